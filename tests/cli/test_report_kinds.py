"""Every kind of result on the page: what is read, that charts are the rows, and what is said."""

import json
import random
from collections import Counter

import pytest
from refusing import refused
from reportresults import COMMANDS, EVIL, RUNS, document, evil, rows

from perfmodel.errors import PerfmodelError, TableError
from perfmodel.quantities import header_of, kind_of
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.html import page, readers
from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.columns import hidden as hides
from perfmodel.render.html.kind import Kind
from perfmodel.render.html.kinds import KINDS
from perfmodel.render.html.results import Results


def found(*paths):
    results = Results()
    for path in paths:
        readers.read(str(path), results)
    return results


def sections(results):
    return [*results.sections(late=False), *results.sections(late=True)]


def bars(section, title):
    """The lanes of stacked bars by view."""
    stacks = (part for part in section.charts if not isinstance(part, Dots))
    (views,) = (each for each in stacks if {spans.title for spans in each.values()} == {title})
    return {view: spans.lanes for view, spans in views.items()}


def lengths(lane):
    """The length of each piece of a bar."""
    return {span.group: span.end - span.start for span in lane.spans}


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_s_result_is_sentences_charts_and_a_table(report_results, name, format):
    results = found(report_results / f"{name}.{format}")
    assert results.tables == []
    first, *_ = sections(results)
    assert first.sentences
    assert first.rows
    assert first.columns
    written = rows(report_results / f"{name}.csv")
    if format == "csv":
        assert len(first.rows) == len(written)
    keys = {column.key for column in first.columns}
    for part in first.charts:
        if isinstance(part, Dots):
            assert {*part.x, *part.y} & keys
            assert {*part.filters, *part.by, *part.name} <= keys | {"size"}


def test_bars_of_a_network_add_up_to_its_time_in_every_view(report_results):
    (one,) = document(report_results, "networks")["networks"]
    (section,) = sections(found(report_results / "networks.json"))
    views = bars(section, "Time")
    assert list(views) == ["class", "layer", "kernel", "limiter", "direction"]
    for name, (bar,) in views.items():
        assert sum(lengths(bar).values()) == pytest.approx(one["time_us"], rel=1e-6), name
    (by_class,) = views["class"]
    for name, time in one["by_class_us"].items():
        assert lengths(by_class)[name] == pytest.approx(time, rel=1e-6)


def test_the_long_kernels_of_a_network_stand_on_the_roofline(report_results):
    (one,) = document(report_results, "networks")["networks"]
    results = found(report_results / "networks.json")
    long = [
        kernel for kernel in one["kernels"]
        if any(kernel.get("flops", {}).values())
        and kernel["layers"] * kernel["time_us"] >= 0.05 * one["time_us"]
    ]  # fmt: skip
    assert [case["time_us"] for case in results.cases] == [each["time_us"] for each in long]
    assert [case["flops"] for case in results.cases] == [each["flops"] for each in long]
    shown = page.contents(results)
    assert len(shown.cases) == len(long)
    assert not any("prediction" in said for said in shown.sentences)


def test_several_networks_stand_beside_each_other(report_results):
    path = report_results / "networks.json"
    (section,) = sections(found(path, path))
    assert [len(view) for view in bars(section, "Time").values()] == [2] * 5
    assert any(": 2 rows; the least time" in said for said in section.sentences)


def test_a_plan_says_by_how_much_it_does_not_fit(report_results):
    steps = document(report_results, "steps")["steps"]
    (section,) = sections(found(report_results / "steps.json"))
    assert {step["fits"] for step in steps} == {True, False}
    drawn = bars(section, "Memory of the fullest device by kind")[""]
    for bar in drawn:
        beyond = sum(lengths(bar).values()) > bar.limit
        assert ("does not fit by" in bar.note) == beyond
    assert [row["fits"] for row in section.rows] == [step["fits"] for step in steps]
    (dots,) = (part for part in section.charts if isinstance(part, Dots))
    drawing = dots_chart(section.rows, dots)
    assert sum(line.get_gid() == "limit" for line in drawing.figure.axes[0].lines) == 1
    fitting = sum(step["fits"] for step in steps)
    counted = f"Training steps: {len(steps)} rows, {fitting} fit; the most tokens/s/device "
    assert any(said.startswith(counted) for said in section.sentences)


def test_users_see_the_tokens_between_which_tpot_lies(report_results):
    (section,) = sections(found(report_results / "loads.json"))
    for row in section.rows:
        assert row["tokens_per_s_per_user"] * row["tpot_ms"] == pytest.approx(1e3)
    drawn = bars(section, "Time between tokens by class")[""]
    for bar, row in zip(drawn, section.rows, strict=True):
        assert sum(lengths(bar).values()) == pytest.approx(row["tpot_ms"], rel=1e-6)


def test_a_profile_opens_with_its_coverage(report_results):
    head = document(report_results, "kernels")
    (section,) = sections(found(report_results / "kernels.json"))
    (bar,) = bars(section, "Coverage: how the time is known")["known_by"]
    shape = lengths(bar)["predicted from recorded shapes"] / sum(lengths(bar).values())
    assert shape == pytest.approx(head["time_share"]["shape"])
    assert f"{head['explained']:.0%} of " in " ".join(section.sentences)


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_every_kind_are_dots_with_errors_beside_the_noise(report_results, name):
    path = report_results / f"rows-{name}.csv"
    (section,) = sections(found(path))
    assert section.id == f"scatter-{name}"
    assert len(section.rows) == len(rows(path))
    (dots,) = (part for part in section.charts if isinstance(part, Dots))
    assert dots.compared
    assert f"{len(section.rows)} {name} runs: predictions are off by" in section.sentences[0]
    noisy = any(row["noise_ln"] for row in rows(path))
    assert any("within the noise" in said for said in section.sentences) == noisy
    assert noisy == (name == "collective")


def test_metrics_keep_their_units(report_results):
    (section,) = sections(found(report_results / "rows-training.csv"))
    assert [row["unit"] for row in section.rows] == ["ms", "ms", "number"]
    (section,) = sections(found(report_results / "rows-serving.csv"))
    assert {column.kind for column in section.columns if column.name == "measured"} == {"ms"}


def test_a_trace_is_lines():
    line = {"device": "a100", "aten": "", "kernels": 1, "flops": 1.0, "hbm_bytes": 2.0}
    lines = [
        {**line, "line": name, "time_us": time, "share": time / 5}
        for name, time in (("layer", 4.0), ("gaps", 1.0), ("all", 5.0))
    ]
    results = Results()
    readers.add({"module": "M", "kernels": 1, "trace": lines}, results, "t.json")
    (section,) = sections(results)
    assert section.sentences == [
        "Traced modules: where the time goes: 1 row; the least time 5.00 µs of M, a100.",
    ]


def test_lists_of_things_are_tables(cli, report_results):
    results = Results()
    for command in ("network list --family gpt2", "compress"):
        readers.add(json.loads(cli(*command.split(), "-f", "json")[1]), results, "x")
    assert len(results.tables) == 1
    assert [section.title for section in sections(results)] == ["Weight formats"]


def test_markup_in_any_text_of_any_kind_stays_text(report_results):
    results = Results()
    for name in COMMANDS:
        readers.add(evil(document(report_results, name)), results, EVIL)
    text = page.render(results, title="T", command="c")
    assert text.count("<script") == 2
    assert "<img" not in text


def test_pages_are_small(report_results):
    paths = [report_results / f"{name}.json" for name in COMMANDS]
    everything = page.render(found(*paths), title="T", command="c")
    assert len(everything.encode()) < 320_000


def test_rows_without_further_members_are_shown_with_what_they_have():
    row = {"ttft_ms": 1, "tpot_ms": 2, "output_tokens_per_s_per_device": 3}
    results = Results()
    readers.add({"loads": [row]}, results, "x.json")
    (section,) = sections(results)
    assert section.sentences == [
        "Served networks: 1 row; the most output tokens/s/device 3.",
    ]


@pytest.mark.parametrize(
    ("rows", "said"), [({"networks": [{"by_class_us": {}, "kernels": []}]}, "networks")]
)
def test_damaged_rows_are_one_line(cli, tmp_path, rows, said):
    (tmp_path / "x.json").write_text(json.dumps(rows), encoding="utf-8")
    refused(
        cli("report", "x.json", "-o", "r.html"),
        f"x.json: {said} are not as perfmodel writes them: no '",
    )
    assert not (tmp_path / "r.html").exists()
    results = Results()
    readers.add(rows, results, "x.json")
    with pytest.raises(TableError):
        sections(results)


def places(value, path=()):
    """Paths to the members of a document, of lists the first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, item in inner:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def test_any_damage_is_shown_or_refused_in_one_line(report_results):
    dice = random.Random(0)
    outcomes, said = Counter(), set()
    for _ in range(30):
        damaged = document(report_results, dice.choice(list(COMMANDS)))
        *outer, last = dice.choice(list(places(damaged)))
        member = damaged
        for key in outer:
            member = member[key]
        member[last] = dice.choice([None, "x", -1, 0, 1e308, float("nan"), [], {}, True])
        results = Results()
        try:
            readers.add(damaged, results, "x.json")
            page.render(results, title="", command="")
            outcomes["shown"] += 1
        except PerfmodelError as error:
            outcomes["refused"] += 1
            said.add(str(error))
    assert min(outcomes["shown"], outcomes["refused"]) > 3
    assert not any("\n" in one for one in said)


def test_a_package_brings_a_kind():
    KINDS["requests"] = Kind("Requests", ("wait_us",), best="-wait_us")
    results = Results()
    try:
        readers.add({"requests": [{"wait_us": 1.0}]}, results, "a.json")
        readers._csv("wait_us,model\n2.0,m\n", results, "b.csv")
        (section,) = sections(results)
    finally:
        del KINDS["requests"]
    assert section.sentences == ["Requests: 2 rows; the least wait 1.00 µs."]
    assert [(one.header, one.kind) for one in section.columns] == [
        *(("wait", "time"), ("model", "text")),
    ]


def test_a_key_says_its_unit():
    wanted = {
        "time_us": ("time", "time"),
        "low_ttft_ms": ("low TTFT", "ms"),
        "prefill_s": ("prefill", "seconds"),
        "capacity_bytes": ("capacity", "binary"),
        "sent_bytes": ("sent", "bytes"),
        "bus_gb_per_s": ("bus bandwidth", "gb_per_s"),
        "output_tokens_per_s": ("output tokens/s", "number"),
        "mfu_percent": ("MFU percent", "number"),
        "mfu": ("MFU", "percent"),
        "useful_flops": ("useful flops", "flops"),
        "footprint_bytes": ("footprint", "binary"),
        "at shared memory": ("at shared memory", "number"),  # an intensity, not a share
    }
    assert {key: (header_of(key), kind_of(key)) for key in wanted} == wanted


def test_no_two_filters_tell_the_same_rows_apart():
    table = [{"a": i % 2, "b": f"{i % 2}", "c": 1, "d": i} for i in range(4)]
    assert telling(table, ["a", "b", "c", "d"]) == ["a", "d"]
    assert telling(table, ["a", "d"], most=3) == ["a"]
    hidden = {one.name: hides(one, table) for one in columns(table)}
    assert hidden == {"a": False, "b": False, "c": True, "d": False}
