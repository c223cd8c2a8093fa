"""Pipelines: laws of every schedule, closed forms where stages are equal, published figures.

Ids (`pipe.…`) are those of the project's list of published vectors.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError, SizeError, UnknownName
from perfmodel.graph.jobs import Jobs
from perfmodel.training.pipeline import KINDS, StageTimes, schedule, simulate
from perfmodel.training.stages import Part

kinds = st.sampled_from(sorted(KINDS))
seconds = st.floats(0.1, 3.0)
FLUSHED = ("gpipe", "1f1b", "interleaved")


def chunks_of(kind, drawn=2):
    return KINDS[kind].chunks or drawn


def fitting(kind, stages, micro_batches):
    """The nearest numbers that a schedule can have."""
    if kind == "dualpipe":
        stages += stages % 2
        return stages, max(2 * stages, micro_batches + micro_batches % 2)
    if kind == "dualpipe-v":
        return stages, max(2 * stages, micro_batches)
    if kind == "interleaved":
        return stages, -(-micro_batches // stages) * stages
    return stages, micro_batches


@st.composite
def schedules(draw, names=kinds, most_stages=6, most_micro_batches=16):
    kind = draw(names)
    stages, micro = fitting(
        kind, draw(st.integers(1, most_stages)), draw(st.integers(1, most_micro_batches))
    )
    return schedule(kind, stages, micro, chunks_of(kind, draw(st.integers(2, 4))))


def uneven(plan, seed):
    draw = np.random.default_rng(seed)
    shape = (plan.stages, plan.chunks)
    return StageTimes(*(draw.uniform(0.2, 2.0, shape) for _ in range(3)))


@given(schedules())
def test_every_part_passes_every_micro_batch_forwards_and_back_once(plan):
    each = plan.micro_batches // plan.copies
    assert len(plan.tasks) == plan.stages
    for stage, tasks in enumerate(plan.tasks):
        done = Counter((t.name, t.chunk, t.micro_batch) for t in tasks)
        assert set(done.values()) == {1}
        for path in plan.paths:
            for _, chunk in (place for place in path if place[0] == stage):
                for micro in range(each):
                    assert done["F", chunk, micro] == 1
                    whole = done["BW", chunk, micro]
                    assert done["B", chunk, micro] == done["W", chunk, micro] == 1 - whole
        assert sum(n for key, n in done.items() if key[0] == "F") == each * plan.chunks


@given(schedules(), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_nothing_starts_before_its_stage_is_free_and_its_input_is_there(plan, seed, send):
    """Walked event by event, beside the scheduler that made the times."""
    found = simulate(plan, uneven(plan, seed), send)
    ends, free = {}, {}
    events = sorted(found.events(), key=lambda event: (event.start_seconds, event.end_seconds))
    for event in events:
        assert event.start_seconds >= free.get(event.stage, 0) - 1e-9
        free[event.stage] = event.end_seconds
        for task in event.tasks:
            name = "B" if task.name == "BW" else task.name
            ends[name, event.stage, task.chunk, task.micro_batch] = event.end_seconds
    for event in events:
        needs = [0.0]
        for task in event.tasks:
            for path in plan.paths:
                if (event.stage, task.chunk) not in path:
                    continue
                part = path.index((event.stage, task.chunk))
                needs += need(task, path, part, ends, send)
        assert event.start_seconds >= max(needs) - 1e-9


def need(task, path, part, ends, send):
    """When what a task takes from its own and from other parts is there."""
    here = (*path[part], task.micro_batch)
    if task.name == "W":
        return [ends["B", *here]]
    source = part - 1 if task.name == "F" else part + 1
    found = [] if task.name == "F" else [ends["F", *here]]
    if 0 <= source < len(path):
        name = "F" if task.name == "F" else "B"
        lag = send * (path[source][0] != path[part][0])
        found.append(ends[name, *path[source], task.micro_batch] + lag)
    return found


@given(schedules(), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_time_is_busy_and_bubble_and_no_less_than_the_work_or_the_way_through(plan, seed, send):
    times = uneven(plan, seed)
    found = simulate(plan, times, send)
    each = plan.micro_batches // plan.copies
    work = each * (times.forward + times.backward + times.weight).sum(axis=1)
    assert found.busy_seconds == pytest.approx(work)
    assert found.seconds == pytest.approx(found.busy_seconds + found.bubble_seconds)
    assert np.all(found.seconds >= found.busy_seconds * (1 - 1e-12))
    assert 0 <= found.bubble_share < 1
    assert found.barrier_seconds >= found.seconds - 1e-9
    through = [
        sum(times.forward[place] + times.backward[place] for place in path) for path in plan.paths
    ]
    assert found.barrier_seconds >= max(through) + 2 * send * plan.crossings - 1e-9


@given(schedules(), st.integers(0, 2**32 - 1), st.floats(1, 3))
def test_slower_is_never_faster_and_time_is_linear(plan, seed, factor):
    times = uneven(plan, seed)
    found = simulate(plan, times, 0.1)
    slower = np.random.default_rng(seed).choice([1.0, factor], times.forward.shape)
    later = StageTimes(times.forward * slower, times.backward * slower, times.weight * slower)
    assert simulate(plan, later, 0.1).barrier_seconds >= found.barrier_seconds - 1e-9
    assert simulate(plan, times, 0.1 * factor).barrier_seconds >= found.barrier_seconds - 1e-9
    scaled = StageTimes(*(2 * each for each in (times.forward, times.backward, times.weight)))
    assert simulate(plan, scaled, 0.2).seconds == pytest.approx(2 * found.seconds)


@given(kinds, st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_more_micro_batches_never_take_less_time(kind, stages, micro, seed):
    stages, micro = fitting(kind, stages, micro)
    more = fitting(kind, stages, micro + 1)[1]
    few, many = (schedule(kind, stages, n, chunks_of(kind)) for n in (micro, more))
    times = uneven(few, seed)
    assert more > micro
    assert simulate(many, times).barrier_seconds > simulate(few, times).barrier_seconds


@given(st.lists(st.lists(st.floats(0, 2), max_size=5), min_size=1, max_size=4), st.data())
def test_the_list_scheduler_is_a_plain_simulation(queues, data):
    """Ticked from one end to the next: a job starts when its unit is free and its inputs are in."""
    flat = [seconds for queue in queues for seconds in queue]
    unit = [i for i, queue in enumerate(queues) for _ in queue]
    order = sorted(range(len(flat)), key=lambda j: (j - unit.index(unit[j]), j))
    waits = {
        job: [(other, 0) for other in order[: order.index(job)] if unit[other] != unit[job]][:2]
        for job in order
    }
    delay = data.draw(st.floats(0, 1))
    found = Jobs([len(queue) for queue in queues], waits).ends(flat, [delay])
    free, ends = {}, {}
    while len(ends) < len(flat):
        job = next(j for j in order if j not in ends)
        needs = [free.get(unit[job], 0.0), *(ends[other] + delay for other, _ in waits[job])]
        ends[job] = free[unit[job]] = max(needs) + flat[job]
    assert found == [ends[job] for job in range(len(flat))]


def test_jobs_that_wait_for_each_other_are_refused():
    with pytest.raises(ProblemError, match="job 0 waits for a job that waits for it"):
        Jobs([1, 1], {0: [(1, -1)], 1: [(0, -1)]}).ends([1.0, 1.0])


# Closed forms, stages equal and sends free.


@given(st.integers(1, 9), st.integers(1, 30), seconds, seconds, seconds)
def test_gpipe_and_1f1b_wait_for_the_other_stages_once(p, m, f, b, w):
    for kind in ("gpipe", "1f1b"):
        plan = schedule(kind, p, m)
        found = simulate(plan, StageTimes.even(plan, f, b, w))
        assert found.seconds == pytest.approx((m + p - 1) * (f + b + w))
        assert found.bubble_seconds == pytest.approx(np.full(p, (p - 1) * (f + b + w)))
        held = np.full(p, m) if kind == "gpipe" else np.minimum(p - np.arange(p), m)
        assert found.peak_in_flight.tolist() == held.tolist()


@given(st.integers(2, 8), st.integers(2, 6), st.integers(2, 5), seconds, seconds, seconds)
def test_interleaving_divides_the_bubble_by_its_chunks(p, groups, v, f, b, w):
    m = groups * p
    plan = schedule("interleaved", p, m, v)
    found = simulate(plan, StageTimes.even(plan, f / v, b / v, w / v))
    assert found.seconds == pytest.approx((m + (p - 1) / v) * (f + b + w))
    assert found.peak_in_flight.max() == pytest.approx(p * (1 + (p - 1) / (p * v)))
    assert plan.crossings == p * v - 1


@given(st.integers(2, 9), st.integers(0, 12), seconds, st.floats(1, 2), st.floats(0.3, 1))
def test_zero_bubble_fills_with_weights(p, more, f, slower, share):
    """For W no longer than F and B no shorter, with micro-batches enough for the warm-up.

    Where W is longer still than (F + B)/2, ZB-H2 has W to spare, and no bubble.
    """
    b, w = f * slower, f * share
    plan = schedule("zb-h1", p, p + more)
    found = simulate(plan, StageTimes.even(plan, f, b, w))
    work = plan.micro_batches * (f + b + w)
    assert found.seconds == pytest.approx(work + (p - 1) * (f + b - w))
    assert found.peak_in_flight.tolist() == [p] * p
    plan = schedule("zb-h2", p, 2 * p - 1 + more)
    found = simulate(plan, StageTimes.even(plan, f, b, w))
    work = plan.micro_batches * (f + b + w)
    assert found.seconds == pytest.approx(work + (p - 1) * (f + b - 2 * w))
    assert found.peak_in_flight.tolist() == [2 * p - 1] * p


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8])
def test_a_v_of_equal_passes_has_no_bubble(p):
    for m in (2 * p, 3 * p + 1):
        plan = schedule("zb-v", p, m)
        found = simulate(plan, StageTimes.even(plan, 0.5, 0.5, 0.5))
        assert found.bubble_seconds == pytest.approx(np.zeros(p))
        assert found.peak_in_flight.max() == p
        assert plan.crossings == 2 * (p - 1)


@pytest.mark.parametrize("p", [3, 4, 5, 6, 8, 9, 12])
def test_controlled_memory_trades_for_bubble(p):
    """2405.15362: (p + 2)//2 and (p + 4)//3 in flight; about 1/2 and 2/3 of 1F1B's bubble."""
    one = schedule("1f1b", p, 2 * p)
    bubble = simulate(one, StageTimes.even(one, 1, 1, 1)).bubble_seconds.max()
    for kind, held, share in (("v-half", (p + 2) // 2, 1 / 2), ("v-min", (p + 4) // 3, 2 / 3)):
        plan = schedule(kind, p, 2 * p)
        found = simulate(plan, StageTimes.even(plan, 0.5, 0.5, 0.5))
        assert found.peak_in_flight.max() == held
        assert found.bubble_seconds.max() <= bubble * share + 2
        assert found.bubble_seconds.max() >= bubble * share * 0.7
        again = schedule(kind, p, 4 * p)
        longer = simulate(again, StageTimes.even(again, 0.5, 0.5, 0.5))
        assert longer.bubble_seconds.max() == pytest.approx(found.bubble_seconds.max())


@given(st.integers(1, 5), st.integers(0, 4), seconds, st.floats(0.1, 1))
def test_dualpipe_waits_for_the_middle(half, more, f, share):
    """(p/2 − 1)(F&B + BW − 3W) where F = B, W is no longer, and a pair takes as long as its parts.

    Of longer B than F the simulation waits a little less than the paper's form, of shorter more.
    """
    w = f * share
    p, bubble = 2 * half, (2 * f + w) + (f + w) - 3 * w
    plan = schedule("dualpipe", p, 2 * p + 2 * more)
    found = simulate(plan, StageTimes.even(plan, f, f, w))
    assert found.bubble_seconds.max() == pytest.approx((p / 2 - 1) * bubble)
    assert found.peak_in_flight.max() == p + 1
    assert (plan.copies, plan.parts, plan.crossings) == (2, p, p - 1)
    plan = schedule("dualpipe-v", half, 2 * half + more)
    found = simulate(plan, StageTimes.even(plan, f, f, w))
    assert found.bubble_seconds.max() == pytest.approx((half - 1) * bubble)
    assert found.peak_in_flight.max() == half + 0.5
    assert (plan.copies, plan.parts) == (1, 2 * half)


@given(st.integers(1, 8), st.integers(1, 24), st.integers(0, 2**32 - 1))
def test_1f1b_of_unequal_stages_lies_between_the_slowest_stage_and_all_in_step(p, m, seed):
    """Σ(F + B) + (m − 1)·max(F + B) is what stages in step would take, and never too little."""
    plan = schedule("1f1b", p, m)
    times = uneven(plan, seed)
    stage = (times.forward + times.backward + times.weight)[:, 0]
    found = simulate(plan, times).seconds
    slowest = int(stage.argmax())
    around = stage[:slowest].sum()  # its first micro-batch has to come, its last one to go
    assert found >= m * stage[slowest] + around - 1e-9
    assert found <= (m + p - 1) * stage[slowest] + 1e-9
    if np.all(stage[:-1] <= stage[-1]):  # the head on the last stage
        assert found == pytest.approx(stage.sum() + (m - 1) * stage[-1])


@given(st.integers(2, 8), seconds, seconds, st.floats(0.001, 0.2))
def test_sends_of_1f1b_show_once_a_round_trip(p, f, b, share):
    """Stage i has p − i micro-batches on the way, and waits for each round trip: p of them cost
    2(p − 1) sends more. Interleaved stages have more on the way, and only fill and drain show.
    """
    send = share * min(f, b)

    def exposed(kind, m, v=1):
        plan = schedule(kind, p, m, v)
        times = StageTimes.even(plan, f, b, 0)
        return (simulate(plan, times, send).seconds - simulate(plan, times).seconds) / send

    assert exposed("1f1b", 1) == pytest.approx(2 * (p - 1))
    more = exposed("1f1b", 6 * p) - exposed("1f1b", 5 * p)
    assert more == pytest.approx(2 * (p - 1), rel=1e-6, abs=1e-6)
    assert exposed("gpipe", 3 * p) == pytest.approx(2 * (p - 1))
    assert exposed("interleaved", 4 * p, 2) == pytest.approx(exposed("interleaved", 2 * p, 2))


def test_one_slow_link_shows_where_it_is():
    plan = schedule("1f1b", 4, 1)
    times = StageTimes.even(plan, 1, 1, 1)
    slow = [simulate(plan, times, np.eye(4)[i]).seconds for i in range(4)]
    assert slow == [14, 14, 14, 12]  # the last one, back to the first stage, is not in 1F1B
    looped = schedule("interleaved", 4, 4, 2)
    times = StageTimes.even(looped, 1, 1, 1)
    plain = simulate(looped, times).seconds
    assert simulate(looped, times, np.eye(4)[3]).seconds > plain


def test_what_a_stage_holds_is_weighed_by_what_its_chunks_hold():
    plan = schedule("interleaved", 4, 8, 2)
    assert plan.peak_held(np.full((4, 2), 0.5)).tolist() == plan.peak_held().tolist()
    one = np.array([[1.0, 0.0]] * 4)
    assert np.all(plan.peak_held(one) <= 2 * plan.peak_held())
    assert plan.by_place(np.arange(8)).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert schedule("zb-v", 3, 6).by_place(np.arange(6)).tolist() == [[0, 5], [1, 4], [2, 3]]
    both = schedule("dualpipe", 4, 8).by_place(np.arange(4))
    assert both.tolist() == [[0, 3], [1, 2], [2, 1], [3, 0]]


# Published figures.


def test_pipe_1f1b():
    for v, expected in ((1, 0.109375), (3, 0.036458)):
        plan = schedule("1f1b" if v == 1 else "interleaved", 8, 64, v)
        found = simulate(plan, StageTimes.even(plan, 1 / v, 1 / v, 1 / v))
        ideal = 64 * 3
        assert found.bubble_seconds / ideal == pytest.approx(np.full(8, expected), rel=1e-4)


def test_pipe_zb1p():
    expected = {"1f1b": 0.291667, "zb-h1": 0.097222, "zb-h2": 0.0, "zb-v": 0.0}
    memory = {"1f1b": 8, "zb-h1": 8, "zb-h2": 15, "zb-v": 8}  # printed as 1x, 1x, 2x, 1x
    traffic = {"1f1b": 1, "zb-h1": 1, "zb-h2": 1, "zb-v": 2}
    for kind, share in expected.items():
        plan = schedule(kind, 8, 24)
        each = 1 / plan.chunks
        found = simulate(plan, StageTimes.even(plan, each, each, each))
        assert found.bubble_seconds.max() / (24 * 3) == pytest.approx(share, abs=1e-5)
        assert found.peak_in_flight.max() == memory[kind]
        assert plan.crossings == traffic[kind] * 7


def test_pipe_dualpipe():
    """F = 1, B = W = 1, F&B = 2.6: 45, 15 and 11.2; memory p, p, p + 1; parameters 1, 1, 2."""
    for kind, bubble, held, copies in (
        ("1f1b", 45, 16, 1),
        ("zb-h1", 15, 16, 1),
        ("dualpipe", 11.2, 17, 2),
    ):
        plan = schedule(kind, 16, 32)
        found = simulate(plan, StageTimes.even(plan, 1, 1, 1, pair=2.6))
        assert found.bubble_seconds.max() == pytest.approx(bubble)
        assert found.peak_in_flight.max() == held
        assert plan.copies == copies


# Bad input.


@cases
def test_what_cannot_be_scheduled_says_what_can(given, said):
    with pytest.raises((ProblemError, UnknownName)) as caught:
        schedule(*given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["interleaved", "dualpipe", "dualpipe-v"])
def test_what_a_refusal_names_is_taken(kind):
    refused = named = 0
    for stages in range(1, 9):
        for micro in range(1, 20):
            try:
                schedule(kind, stages, micro)
            except SizeError as error:
                refused += 1
                sizes = error.args[1]
                named += any(sizes.values())
                for name, numbers in sizes.items():
                    for number in numbers:
                        given = {"pipeline": stages, "micro-batches": micro} | {name: number}
                        schedule(kind, *given.values())
    assert refused > 20
    assert named > 0.6 * refused


def test_times_of_another_shape_are_refused():
    plan = schedule("1f1b", 4, 8)
    good = np.ones((4, 1))
    with pytest.raises(ProblemError, match=r"times are for 3 stages of 1 chunks"):
        simulate(plan, StageTimes(*[np.ones((3, 1))] * 3))
    with pytest.raises(ProblemError, match="weight has the shape"):
        StageTimes(good, good, np.ones((4, 2)))
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ProblemError, match="backward has a time below 0 or none"):
            StageTimes(good, bad * good, good)
        with pytest.raises(ProblemError, match="a send takes a time below 0 or none"):
            simulate(plan, StageTimes(good, good, good), bad)
    with pytest.raises(ProblemError, match="sends have the shape"):
        simulate(plan, StageTimes(good, good, good), np.ones(3))
    with pytest.raises(ProblemError, match="cuts the model into 4 parts, but 3 parts were given"):
        plan.by_place(np.ones(3))


def test_gradients_of_weights_are_their_kernels_share_of_the_backward_pass():
    """Three layers of two kernels and one of one: (3 x 2 + 5) of (3 x 4 + 5) seconds."""

    def layer(repeat, **seconds):
        kernels = [SimpleNamespace(name=name, seconds=time) for name, time in seconds.items()]
        return SimpleNamespace(repeat=repeat, backward=SimpleNamespace(children=kernels))

    blocks = layer(3, **{"up.dgrad": 2.0, "up.wgrad": 2.0})
    frozen = SimpleNamespace(repeat=7, backward=None)
    part = Part((blocks, layer(1, **{"head.wgrad": 5.0}), frozen))
    assert part.weight_share() == pytest.approx((3 * 2 + 5) / (3 * 4 + 5))
    assert Part((frozen,)).weight_share() == 0.0
