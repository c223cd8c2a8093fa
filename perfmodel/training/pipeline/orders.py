"""The orders of published schedules, stage by stage, as phrases: a number of runs, and passes.

F0 is the forward pass of chunk 0, B0 the gradient of its input, BW0 its whole backward pass, F0&BW1
two passes that run as one. Each takes the chunk's next micro-batch; passes beyond the last one are
left out. W is the gradient of the weights that has been postponed longest. With stage i of p, m
micro-batches and v chunks:

    GPipe          1811.06965, figure 2c     all forwards, then all backwards, the last first
    1F1B           2104.04473, 2.2.1         p − 1 − i forwards, then one forward and one backward
    interleaved    2104.04473, 2.2.2         micro-batches in groups of p, a chunk at a time, after
                                             2(p − 1 − i) + (v − 1)·p forwards
    ZB-H1, ZB-H2   2401.10241, 2.1 and 2.2   p − i or 2(p − i) − 1 forwards, W i or 2i behind B
    ZB-V           2401.10241, 6             two chunks in a V, as its authors give it for F = B = W
    DualPipe       2412.19437, 3.2.1         micro-batches from both ends, every parameter twice;
                                             as a V, two chunks a stage (the authors' code)

V-Half and V-Min are in controlled.py.
"""

from __future__ import annotations

import numpy as np

PASSES = ("F", "B", "W", "BW")
"""A forward pass, the gradient of its input, that of its weights, and both in one."""
F, B, W, BW = range(len(PASSES))

Row = tuple[int, int, int, int]
"""Pass, chunk, micro-batch, and 1 where it runs as one with the row before."""
Phrase = tuple[int, str]
"""A number of runs, and passes."""


def written(micro_batches: int, *phrases: Phrase) -> np.ndarray:
    """The rows of a stage's order, shape (tasks, 4), until no weight is postponed."""
    rows: list[Row] = []
    counts: dict[tuple[bool, int], int] = {}
    postponed: list[tuple[int, int]] = []
    for word in (w for runs, words in phrases for w in words.replace("&", " &").split() * runs):
        if word == "W":
            rows += [(W, *weight, 0) for weight in postponed[:1]]
            del postponed[:1]
            continue
        name, chunk = PASSES.index(word.strip("&0123456789")), int(word.lstrip("&FBW"))
        micro = counts.get((name > F, chunk), 0)
        counts[name > F, chunk] = micro + 1
        rows.append((name, chunk, micro, int(word[0] == "&")))
        if name == B:
            postponed.append((chunk, micro))
    rows += [(W, *weight, 0) for weight in postponed]
    return np.array([row for row in rows if row[2] < micro_batches], dtype=np.int64)


def gpipe(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """The same order on every stage."""
    order = written(micro_batches, (micro_batches, "F0"), (micro_batches, "BW0"))
    order[micro_batches:, 2] = order[micro_batches:, 2][::-1]
    return [order] * stages


def alternating(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """1F1B; of several chunks, interleaved."""
    groups = micro_batches // stages if chunks > 1 else micro_batches
    turn = [chunk for chunk in range(chunks) for _ in range(stages if chunks > 1 else 1)]
    forwards = [f"F{chunk}" for chunk in turn * groups]
    backwards = [f"BW{chunks - 1 - chunk}" for chunk in turn * groups]

    def order(stage: int) -> np.ndarray:
        rounds = 2 if chunks > 1 else 1
        ahead = min(rounds * (stages - 1 - stage) + (chunks - 1) * stages, len(forwards))
        pairs = zip(forwards[ahead:], backwards, strict=False)
        steady = [word for pair in pairs for word in pair]
        rest = backwards[len(forwards) - ahead :]
        return written(micro_batches, (1, " ".join([*forwards[:ahead], *steady, *rest])))

    return [order(stage) for stage in range(stages)]


def h1(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """As much memory as 1F1B."""
    return [_postponing(stages - i, i, micro_batches) for i in range(stages)]


def h2(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """Twice the memory, no bubble where F = B = W."""
    return [_postponing(2 * (stages - i) - 1, 2 * i, micro_batches) for i in range(stages)]


def _postponing(ahead: int, lag: int, micro_batches: int) -> np.ndarray:
    return written(micro_batches, (ahead, "F0"), (lag, "B0 F0"), (micro_batches - lag, "B0 W F0"))


def zb_v(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """As much memory as 1F1B, no bubble where F = B = W; fewer than 2p − 1 micro-batches leave
    gaps."""
    enough = max(2 * stages - 1, micro_batches)
    return [
        written(
            micro_batches,
            (2 * (stages - i) - 1, "F0"),
            (i, "F1 F0"),
            (stages - i, "F1 B1 W"),
            (enough - stages, "F0 B0 W F1 B1 W"),
            (i, "B0 B1"),
            (stages - i, "B0 W"),
        )
        for i in range(stages)
    ]


def dualpipe(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """Two directions; the second half of the stages has the chunks exchanged."""
    side = dualpipe_v(stages // 2, micro_batches // 2, chunks)
    return [*side, *(order * (1, -1, 1, 1) + (0, 1, 0, 0) for order in reversed(side))]


def dualpipe_v(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """One V."""
    return [_dual(stages, i, micro_batches) for i in range(stages)]


def _dual(stages: int, i: int, micro_batches: int) -> np.ndarray:
    """Stage i from the outer end of a side."""
    inner, pair = stages - 1 - i, "F0&BW1 F1&BW0"
    steady = micro_batches - 2 * stages + i
    # The first one is apart on the innermost stage, so that the next stage has its input sooner.
    first = pair if inner else pair.replace("&", " ", 1)
    ends = [f"{'B' if turn > i else 'BW'}{1 - turn % 2}" for turn in range(2 * (i + 1))]
    return written(
        micro_batches,
        (2 * inner, "F0"),
        (i + 1, "F0 F1"),
        (inner, "B1 W F1"),
        (1, first),
        (steady, pair),
        (inner, "BW1 F1&BW0"),
        (1, " ".join(ends)),
        (inner, "W B0"),
    )
