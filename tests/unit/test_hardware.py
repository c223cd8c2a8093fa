"""Hardware specs: file → device → file is the identity, physics holds, errors are one line."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import jsonschema
import pytest
from cases import listed
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import formats
from perfmodel.catalogue import normalise
from perfmodel.entries import Misfit, made, written
from perfmodel.errors import ProblemError, SpecError, UnknownName
from perfmodel.hardware import (
    aliases,
    catalogue,
    load,
    loads,
    names,
    specs,
    validate_file,
)
from perfmodel.hardware.facts import Sourced, walk
from perfmodel.hardware.physics import check
from perfmodel.hardware.scaling import PARTS
from perfmodel.yamltable import parse

NAMES = names()
MEASURED_DEVICES = {
    "m40", "gtx1080ti", "p4", "p100-pcie-16gb", "v100-sxm2", "v100-pcie-32gb", "t4", "rtx2080ti",
    "a100-sxm4-80gb", "a100-sxm4-40gb", "a100-pcie-40gb", "a100-pcie-80gb",
    "a10", "a10g", "a40", "rtx3090", "l4", "l40", "l40s", "rtx4090",
    "h100-sxm", "h100-pcie", "h200-sxm", "h20", "h800-sxm",
    "b200", "b300", "gb200", "gb300", "rtx-pro-6000-server",
    "mi100", "mi210", "mi250-gcd", "mi300x", "mi325x", "mi355x",
}  # fmt: skip
H100 = catalogue.shipped() / "h100-sxm.yaml"
devices = st.sampled_from(NAMES).map(load)
LINES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
    lambda text: text.strip() and text.isprintable()
)


# Laws


def test_spec_to_file_to_spec_is_the_identity():
    for name in NAMES:
        device = load(name)
        assert loads(device.dump()) == device
        assert loads(device.dump()).dump() == device.dump()


@given(devices, st.lists(LINES, max_size=3), LINES)
def test_any_printable_note_survives_the_file(device, notes, key):
    changed = replace(device, notes=tuple(notes), sources={**device.sources, key: "x"})
    assert loads(changed.dump()) == changed


@given(devices, st.sampled_from(sorted(PARTS)), st.floats(1e-3, 1e3))
def test_scaled_devices_are_specs_too(device, part, factor):
    try:
        copy = device.scaled(**{part: factor})
    except ProblemError:
        assert part not in ("hbm_bandwidth", "hbm_capacity", "units", "clock")
        return
    # physics may be broken on purpose, so only the schema is checked here
    data = parse(copy.dump())
    assert made(type(device), data) == copy


@given(devices, st.floats(0.1, 10), st.floats(0.1, 10))
def test_scaling_is_monotone(device, one, other):
    low, high = sorted((one, other))
    for part, rate in (
        ("hbm_bandwidth", lambda d: d.hbm_bytes_per_s),
        ("hbm_capacity", lambda d: d.hbm_capacity_bytes),
        ("units", lambda d: d.units),
        ("clock", lambda d: d.boost_hz),
        ("clock", lambda d: sum(d.matrix_flops(t) for t in d.matrix_types)),
    ):
        assert rate(device.scaled(**{part: low})) <= rate(device.scaled(**{part: high}))


@given(st.sampled_from(["h100-sxm", "a100-sxm4-80gb"]).map(load), st.floats(0.2, 5))
def test_units_and_clock_keep_the_physics(device, factor):
    for copy in (device.scaled(units=factor), device.scaled(clock=factor)):
        peaks = [f for f in check(copy) if "peak" in f.message and "measured" not in f.message]
        assert not peaks


@given(st.text(max_size=200))
def test_any_text_is_a_spec_or_one_line_with_its_place(text):
    with pytest.raises(SpecError) as error:
        loads(text, "f.yaml")
    assert re.match(r"f\.yaml:\d+: ", str(error.value))
    assert "\n" not in str(error.value)


@given(st.integers(0, 20), st.integers(0, 20), st.sampled_from(["\tslug: x", "}", "%"]))
def test_what_is_no_yaml_is_told_at_its_line(before, after, text):
    with pytest.raises(SpecError, match=rf"^f\.yaml:{before + 1}: not valid YAML"):
        loads("# a line\n" * before + text + "\n# a line" * after, "f.yaml")


@given(st.data())
def test_a_damaged_spec_is_one_line_with_its_place(data):
    text = H100.read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 60)))
    damaged = text[:start] + data.draw(st.text(max_size=10)) + text[end:]
    try:
        said = f"f.yaml:1: {loads(damaged, 'f.yaml').slug}"
    except SpecError as error:
        said = str(error)
    assert re.match(r"f\.yaml:\d+: .+\Z", said)


# The shipped specs


def test_shipped_specs_are_valid_and_cite_their_sources():
    for name in NAMES:
        device = load(name)
        assert validate_file(catalogue.shipped() / f"{name}.yaml") == []
        assert check(device) == []
        for _, fact in walk(device):
            assert isinstance(fact, Sourced)
            assert fact.source


def test_shipped_specs_match_the_committed_schema():
    validator = jsonschema.Draft202012Validator(formats.schema("hardware"))
    for name in NAMES:
        validator.validate(parse((catalogue.shipped() / f"{name}.yaml").read_text()))


def test_the_schema_refuses_a_number_without_unit():
    data = parse(H100.read_text())
    data["memory"]["hbm"]["bandwidth"]["value"] = "3.35e12"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, formats.schema("hardware"))


def test_every_device_with_measured_runs_has_a_spec():
    assert set(NAMES) >= MEASURED_DEVICES
    assert len(NAMES) >= 100


def test_every_spelling_means_one_device():
    spellings = [
        normalise(spelling) for device in specs() for spelling in {device.slug, *device.aliases}
    ]
    assert len(spellings) == len(set(spellings))
    assert not {spelling for spelling in aliases() if not spelling}


def test_h100():
    # 132 SMs × 4096 FLOP/clk × 1.83 GHz = 989.4 TFLOP/s; 5120 bit × 2619 MHz × 2 = 3.352 TB/s
    device = load("h100-sxm")
    assert device.matrix_flops("bf16") == 989.4e12
    assert device.units * 4096 * device.tensor_hz == pytest.approx(989.4e12, rel=1e-3)
    assert device.hbm_bytes_per_s == pytest.approx(5120 / 8 * 2619e6 * 2, rel=1e-3)
    assert device.shared_max_per_block_bytes == 227 * 1024
    # 655 cycles at 1755 MHz = 373 ns
    assert device.latency_seconds("hbm") == pytest.approx(373e-9, rel=1e-2)
    assert (device.boost_hz, device.warp_size, device.max_warps) == (1.98e9, 32, 64)
    with pytest.raises(ProblemError, match="h100-sxm has no fp4 matrix rate; it has: fp64, tf32"):
        device.matrix_flops("fp4")


def test_what_is_absent_is_none_and_falls_back_where_stated():
    xeon = load("xeon-gold-6242")
    assert xeon.warp_size == 1
    assert xeon.special_per_clock is None
    assert xeon.latency_seconds("hbm") is None
    assert xeon.matrix_types == ()
    assert xeon.vector_flops("bf16") == xeon.vector_flops("fp32") == 2.87e12
    a100 = load("a100")
    assert a100.tensor_hz == a100.boost_hz
    assert a100.vector_flops("fp8") == a100.vector_flops()


def test_a_what_if_device_says_so():
    device = load("h100-sxm").scaled(hbm_bandwidth=2, units=0.5)
    assert device.slug == "h100-sxm(hbm_bandwidth×2)(units×0.5)"
    assert device.hbm_bytes_per_s == 2 * 3.352e12
    assert device.units == 66
    assert device.matrix_flops("bf16") == 989.4e12 / 2
    assert device.memory.hbm.bandwidth.status == "derived"
    with pytest.raises(UnknownName, match="did you mean hbm_bandwidth"):
        device.scaled(hbm_bandwith=2)
    for factor in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ProblemError, match="positive number"):
            device.scaled(clock=factor)
    with pytest.raises(ProblemError, match="t4 has no l2_bandwidth to scale"):
        load("t4").scaled(l2_bandwidth=2)


# Names


def test_names_are_forgiving():
    for spelling in ("h100", "H100 SXM5 80GB", "h100_sxm", "NVIDIA-H100-SXM5", str(H100)):
        assert load(spelling).slug == "h100-sxm"


@pytest.mark.parametrize(("name", "near"), [("h10-sxm", "h100-sxm"), ("mi300", "mi300x")])
def test_unknown_names_offer_the_nearest(name, near):
    with pytest.raises(UnknownName) as error:
        load(name)
    assert near in str(error.value)
    assert "\n" not in str(error.value)


def test_a_slug_opens_one_file(monkeypatch):
    opened = []
    monkeypatch.setattr(catalogue.specfile, "read", lambda kind, path: opened.append(path) or path)
    monkeypatch.setattr(catalogue.DEVICES, "_cached", catalogue.DEVICES._cached.__wrapped__)
    catalogue.DEVICES.load("b200")
    assert [path.name for path in opened] == ["b200.yaml"]


def test_own_folders_come_first(tmp_path, monkeypatch):
    mine = load("h100-sxm").dump().replace('"80 GB"', '"94 GB"')
    (tmp_path / "h100-sxm.yaml").write_text(mine)
    other = mine.replace("slug: h100-sxm", "slug: mine").replace("aliases: [", "aliases: [own, ")
    (tmp_path / "mine.yaml").write_text(other)
    (tmp_path / "broken.yaml").write_text("]")
    monkeypatch.setenv("PERFMODEL_HARDWARE_PATH", str(tmp_path))
    assert load("h100-sxm").hbm_capacity_bytes == 94e9
    assert load("own").slug == "mine"
    assert "mine" in names()
    assert load("a100").slug == "a100-sxm4-80gb"
    monkeypatch.delenv("PERFMODEL_HARDWARE_PATH")
    assert load("h100-sxm").hbm_capacity_bytes == 80e9


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "h100-sxm.yaml"
    path.write_text(H100.read_text())
    assert load(path).units == 132
    path.write_text(H100.read_text().replace("value: 132", "value: 131"))
    assert load(path).units == 131


# Errors: one line, with file and line


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


EDITS = listed(__file__, "EDITS")


@pytest.mark.parametrize("what", EDITS)
def test_a_wrong_spec_is_one_line_at_its_place(what, tmp_path):
    old, new, says = EDITS[what]
    text = H100.read_text()
    assert old in text
    path = tmp_path / "h100-sxm.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        load(path)
    message = str(error.value)
    assert says in message
    assert "\n" not in message
    line = int(re.fullmatch(rf"{re.escape(str(path))}:(\d+): .*", message).group(1))
    assert abs(line - line_of(text, old)) <= 3  # at the edit, or at the level it is compared with
    assert any(message.startswith(problem) for problem in validate_file(path))


def test_each_problem_gets_its_own_line(tmp_path):
    text = H100.read_text().replace('"700 W"', "700").replace('"50 MiB"', "50")
    path = tmp_path / "h100-sxm.yaml"
    path.write_text(text)
    problems = validate_file(path)
    assert len(problems) == 2
    assert [int(p.split(":")[1]) for p in problems] == [
        line_of(text, "capacity: {value: 50,"),
        line_of(text, "tdp:"),
    ]
    with pytest.raises(SpecError, match=r"\(and 1 more\)"):
        load(path)


def test_an_unknown_source_is_an_error():
    text = H100.read_text().replace("source: [llm-calc]", "source: [rumour]", 1)
    with pytest.raises(SpecError, match="source 'rumour' is not explained under sources"):
        loads(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ":1: the file is empty"),
        (b"# only a comment\n", ":1: the file is empty"),
        (b"- 1\n- 2\n", ":1: a spec is a mapping"),
        (b"just text", ":1: a spec is a mapping"),
        (b"name: \xff\xfe", ":1: not UTF-8"),
        (b"a: {b: [1, 2", ":1: not valid YAML"),
        (b"a: 1\n\tb: 2", ":2: not valid YAML"),
        (b"a: 1\n---\nb: 2\n", "a second document"),
        (b"1: x\n", ":1: key 1 is not text"),
        (b"a: " + b"[" * 5000, "nested deeper than"),
        (b"a: " + b"x" * 300_000, "larger than 256 KiB"),
        (b"name: x\n", "schema_version: the key is missing; add it"),
    ],
)
def test_files_that_are_no_spec(content, says, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError) as error:
        load(path)
    assert says in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_file_cut_short_at_any_line_is_one_line(tmp_path):
    lines = H100.read_text().splitlines(keepends=True)
    for end in range(len(lines) - 30):
        with pytest.raises(SpecError) as error:
            loads("".join(lines[:end]), "cut.yaml")
        assert re.match(r"cut\.yaml:\d+: ", str(error.value))


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path, "\0/x"):
        with pytest.raises(SpecError, match="cannot be read"):
            load(f"{path}/" if path == tmp_path else path)


def test_a_spec_is_called_after_its_slug(tmp_path, monkeypatch):
    path = tmp_path / "other.yaml"
    path.write_text(H100.read_text())
    assert validate_file(path) == [f"{path}:4: slug 'h100-sxm' is not the file's name 'other'"]
    assert load(path).slug == "h100-sxm"
    monkeypatch.setenv("PERFMODEL_HARDWARE_PATH", str(tmp_path))
    with pytest.raises(SpecError, match="is not the file's name"):
        load("other")


def test_facts_stay_as_they_are_and_copies_are_values():
    rate = load("h100-sxm").memory.hbm.bandwidth
    with pytest.raises(AttributeError):
        rate.value = "1 TB/s"
    with pytest.raises(AttributeError):
        del rate.value
    for copy in (pickle.loads(pickle.dumps(rate)), replace(rate), made(type(rate), written(rate))):
        assert copy == rate
        assert hash(copy) == hash(rate)
    changed = replace(rate, value="1 TB/s")
    assert changed != rate
    assert changed.si == 1e12
    assert rate.si == load("h100-sxm").hbm_bytes_per_s


@pytest.mark.parametrize("more", [{"value": "1 W"}, {"value": "0 TB/s"}, {"source": []}, {"x": 1}])
def test_a_fact_is_checked_where_it_is_decoded(more):
    memory = load("h100-sxm").memory
    entry = written(memory)
    entry["hbm"]["bandwidth"] |= more
    with pytest.raises(Misfit, match=r"^hbm\.bandwidth(\.source|\.x)?: "):
        made(type(memory), entry)
