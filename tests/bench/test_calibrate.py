"""Calibration: readings become a spec that can be read, predicted with and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import Matmul, Rowwise, predict
from perfmodel.errors import OutputError, TableError
from perfmodel.hardware import load, loads, validate_file
from perfmodel.hardware.physics import check
from perfmodel.measured import environment, microbench
from perfmodel.measured.calibrate import calibrated
from perfmodel.measured.environment import Cpu
from perfmodel.measured.microbench import Curve, Readings
from perfmodel.measured.plateaus import judged, plateau

KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = [2.0**i for i in range(15, 29)]


def stepped(levels: dict[float, float], beyond: float) -> tuple[tuple[float, float], ...]:
    """A curve that holds each level's value up to the level's size."""
    return tuple(
        (size, next((value for limit, value in levels.items() if size <= limit), beyond))
        for size in SIZES
    )


def cpu_readings(**more: object) -> Readings:
    streams = {
        name: Curve("B/s", "C loop", stepped({64 * KIB: 8e11, 4 * MIB: 4e11, 32 * MIB: 2e11}, rate))
        for name, rate in (("read", 8e10), ("copy", 7e10), ("triad", 7.5e10))
    }
    latency = stepped({32 * KIB: 1e-9, 1 * MIB: 4e-9, 32 * MIB: 2e-8}, 1e-7)
    found = Readings(
        kind="cpu",
        slug="acme-9000-2-cores",
        name="Acme 9000",
        units=2,
        memory_bytes=64e9,
        levels=(
            ("L1", 64.0 * KIB, 32.0 * KIB),
            ("L2", 4.0 * MIB, 2.0 * MIB),
            ("L3", 32.0 * MIB, 32.0 * MIB),
        ),
        flags=("avx512_bf16", "avx512f", "fma"),
        curves={**streams, "latency": Curve("s", "C loop", latency)},
        rates={
            "clock": 4e9, "vector.fp32": 5e11, "matrix.fp32": 4e11, "matrix.bf16": 8e11,
            "special": 3e9, "launch.stream": 2e-6,
        },
        methods={"matrix": "torch products"},
        versions={"torch": "2.13.0"},
        timestamp_utc="2026-01-02T03:04:05Z",
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


def gpu_readings(slug: str, name: str) -> Readings:
    stream = Curve("B/s", "torch", stepped({32 * MIB: 7e12}, 4.2e12))
    return replace(
        cpu_readings(),
        kind="cuda",
        slug=slug,
        name=name,
        units=132,
        memory_bytes=141e9,
        levels=(("L2", 60.0 * MIB, 60.0 * MIB),),
        flags=(),
        curves={
            "read": stream,
            "copy": stream,
            "latency": Curve("s", "Triton", ((2.0**28, 6e-7),)),
        },
        rates={"matrix.bf16": 7.9e14, "matrix.fp8": 9.9e18, "launch.graph": 1.5e-6, "clock": 1.9e9},
        load=((1.0, 7e14, 1755.0, 690.0),),
    )


def test_a_plateau_is_what_a_level_shows() -> None:
    readings = cpu_readings()
    assert [plateau(readings, "read", level) for level in ("L1", "L2", "L3", None)] == [
        8e11, 4e11, 2e11, 8e10,
    ]  # fmt: skip
    assert [plateau(readings, "latency", level) for level in ("L1", "L2", "L3", None)] == [
        None, 4e-9, 2e-8, 1e-7,
    ]  # fmt: skip  # no working set of the curve is well inside L1
    assert plateau(readings, "gather", None) is None


def test_an_unknown_processor_becomes_a_sound_spec(tmp_path: Path) -> None:
    device = calibrated(cpu_readings(), "my-machine")
    assert check(device) == []
    assert (device.slug, device.aliases, device.kind) == (
        "my-machine", ("acme-9000-2-cores",), "cpu",
    )  # fmt: skip
    assert device.vector_flops("fp32") == 2 * 64 * 4e9  # cores × avx512f FLOP/clk × the clock
    assert device.matrix_flops("bf16") == 2 * device.vector_flops("fp32")
    assert device.hbm_bytes_per_s == 8e10
    assert device.measured_hbm_bytes_per_s == 8e10
    assert device.measured_l2_bytes_per_s == 2e11
    assert device.l2_capacity_bytes == 32 * MIB
    assert device.shared_bytes_per_clock == 4e11 / 2 / 4e9
    assert device.latency_seconds("hbm") == 1e-7
    assert device.measured is not None
    assert {name: rate.si for name, rate in device.measured.matrix.items()} == {
        "fp32": 4e11, "bf16": 8e11,
    }  # fmt: skip
    path = tmp_path / "my-machine.yaml"
    path.write_text(device.dump())
    assert validate_file(path) == []
    assert loads(device.dump()) == device


def test_every_fact_says_where_it_is_from() -> None:
    from perfmodel.hardware.facts import walk

    device = calibrated(cpu_readings(), "x")
    statuses = {fact.status for _, fact in walk(device)}
    assert statuses == {"config", "measured", "derived", "unverified"}
    assert all(fact.source[0] in device.sources for _, fact in walk(device))


def test_more_than_the_instruction_set_gives_raises_the_peak() -> None:
    device = calibrated(cpu_readings(flags=("sse2",)), "x")
    assert device.vector_flops("fp32") == 2 * 64 * 4e9  # 8 by sse2, doubled until 5e11 fits
    assert device.compute.vector_flop_per_clock_per_unit is not None


def test_what_was_not_measured_is_not_invented() -> None:
    curves = {name: c for name, c in cpu_readings().curves.items() if name != "latency"}
    device = calibrated(cpu_readings(curves=curves, rates={}, levels=()), "x")
    assert device.latency is None
    assert device.l2_capacity_bytes is None
    assert device.compute.clocks.boost is not None
    assert device.compute.clocks.boost.status == "unverified"


def with_read(levels: dict[float, float], beyond: float = 8e10, **more: object) -> Readings:
    """The processor's readings with another curve of reads."""
    read = Curve("B/s", "C loop", stepped(levels, beyond))
    return cpu_readings(curves={**cpu_readings().curves, "read": read}, **more)


def test_a_cache_that_is_no_faster_than_memory_is_left_out() -> None:
    device = calibrated(with_read({}), "x")
    assert device.measured_l2_bytes_per_s is None
    assert device.shared_bytes_per_clock is None
    assert device.notes == (
        "bandwidth of L3 left out: 80.0 GB/s is not above 80.0 GB/s of main memory",
        "bandwidth of L2 left out: 80.0 GB/s is not above 80.0 GB/s of main memory",
        "bandwidth of L1 left out: 80.0 GB/s is not above 80.0 GB/s of main memory",
    )


def test_a_level_out_of_order_is_left_out_alone() -> None:
    """A machine busy while L2 was measured: L3 and L1 stay, and so does the order of the spec."""
    device = calibrated(with_read({64 * KIB: 8e11, 4 * MIB: 1.9e11, 32 * MIB: 2e11}), "x")
    assert check(device) == []
    assert device.measured_l2_bytes_per_s == 2e11  # the last cache is L3
    assert device.shared_bytes_per_clock is None
    assert device.measured is not None
    assert device.measured.l1_bandwidth is not None
    assert device.notes == ("bandwidth of L2 left out: 190 GB/s is not above 200 GB/s of L3",)


RATES = st.floats(1e9, 1e13)


@given(st.tuples(*[RATES] * 6), st.tuples(*[st.floats(1e-10, 1e-5)] * 4), RATES, RATES)
def test_any_readings_make_a_sound_spec(
    streams: tuple[float, ...], latencies: tuple[float, ...], vector: float, product: float
) -> None:
    """Whatever a busy machine showed, what is written is valid and rises towards the core."""
    first, second, third, *memory = streams
    steps = {64 * KIB: first, 4 * MIB: second, 32 * MIB: third}
    curves = {
        name: Curve("B/s", "C loop", stepped(steps, rate))
        for name, rate in zip(("read", "copy", "triad"), memory, strict=True)
    }
    late = dict(zip((64 * KIB, 2 * MIB, 32 * MIB), latencies, strict=False))
    curves["latency"] = Curve("s", "C loop", stepped(late, latencies[3]))
    rates = {**cpu_readings().rates, "vector.fp32": vector, "matrix.fp32": product}
    readings = cpu_readings(curves=curves, rates=rates)
    device = calibrated(readings, "x")
    assert [finding for finding in check(device) if finding.level == "error"] == []
    found = judged(readings, max(memory))
    rising = [
        max(memory),
        *(found.bandwidth[n] for n in ("L3", "L2", "L1") if n in found.bandwidth),
    ]
    assert rising == sorted(set(rising))
    falling = [found.latency[n] for n in (None, "L3", "L2", "L1") if n in found.latency]
    assert falling == sorted(set(falling), reverse=True)
    left = {"bandwidth": 3 - len(found.bandwidth), "latency": 3 - len(found.latency)}
    for kind, count in left.items():  # no set of the latency curve is well inside L1
        assert sum(line.startswith(kind) for line in found.said) == count
    assert ("vector.fp32" in found.rates) == (vector >= 0.5 * product)


def test_a_vector_rate_far_below_the_product_is_left_out() -> None:
    rates = {"clock": 4e9, "vector.fp32": 1.1e10, "matrix.fp32": 2e11}
    device = calibrated(cpu_readings(rates=rates), "x")
    assert device.measured is not None
    assert device.measured.vector == {}
    assert device.measured.matrix["fp32"].si == 2e11
    assert device.notes == (
        "vector rate left out: 11.0 GFLOP/s is under half of the 200 GFLOP/s of the fp32 product, "
        "which runs on the same unit",
    )
    assert calibrated(cpu_readings(rates=rates, name="Apple M9"), "x").notes == ()


def test_the_product_raises_the_peak_where_the_vector_loop_failed() -> None:
    rates = {"clock": 4e9, "vector.fp32": 1e9, "matrix.fp32": 4e11}
    device = calibrated(cpu_readings(flags=("sse2",), rates=rates), "x")
    assert device.vector_flops("fp32") == 2 * 64 * 4e9


def test_what_was_disturbed_says_so() -> None:
    read = cpu_readings().curves["read"]
    curves = {**cpu_readings().curves, "read": replace(read, disturbed=(2.0**28, 2.0**23))}
    readings = cpu_readings(
        curves=curves, disturbed=("clock", "vector.fp32"), busy="load average 9"
    )
    device = calibrated(readings, "x")
    assert device.measured is not None
    notes = {
        "memory": device.measured.hbm_bandwidth["read"].note,
        "cache": device.measured.l2_bandwidth and device.measured.l2_bandwidth.note,
        "copy": device.measured.hbm_bandwidth["copy"].note,
        "vector": device.measured.vector["fp32"].note,
    }
    assert {name: "other programs ran" in (note or "") for name, note in notes.items()} == {
        "memory": True, "cache": False, "copy": False, "vector": True,
    }  # fmt: skip  # one of the three points that show the cache was disturbed
    assert device.notes == ("calibrated on a busy machine: load average 9",)


def test_a_shipped_device_keeps_its_datasheet() -> None:
    device, shipped = calibrated(gpu_readings("h200-sxm", "NVIDIA H200"), "mine"), load("h200-sxm")
    assert device.hbm_bytes_per_s == shipped.hbm_bytes_per_s
    assert device.matrix_flops("bf16") == shipped.matrix_flops("bf16")
    assert device.measured is not None
    assert device.measured.matrix["bf16"].si == 7.9e14
    assert "fp8" not in device.measured.matrix  # above the peak: not this machine's
    assert device.measured_l2_bytes_per_s == 7e12
    assert device.measured.launch is not None
    assert "h200-sxm" in device.aliases


def test_calibrating_again_starts_from_the_datasheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFMODEL_HARDWARE_PATH", str(tmp_path))
    for readings, name in (
        (cpu_readings(), "box"),
        (gpu_readings("nvidia-h200", "NVIDIA H200"), "card"),
    ):
        first = calibrated(readings, name)
        (tmp_path / f"{name}.yaml").write_text(first.dump())
        assert calibrated(readings, name) == first
    slower = calibrated(cpu_readings(rates={"clock": 2e9}), "box")
    assert slower.boost_hz == 2e9


def test_an_unknown_gpu_gets_what_was_measured() -> None:
    device = calibrated(gpu_readings("acme-gpu", "Acme GPU"), "mine")
    assert device.kind == "gpu"
    assert device.matrix_flops("bf16") == 7.9e14
    assert device.compute.matrix["bf16"].status == "measured"
    assert predict(Matmul(4096, 4096, 4096, dtype="bf16"), device).seconds > 0


@pytest.mark.parametrize(
    "problem", [Matmul(512, 512, 512, dtype="fp32"), Rowwise("softmax", 1024, 1024, "fp32")]
)
def test_predictions_can_be_made_with_it(problem: Matmul | Rowwise) -> None:
    found = predict(problem, calibrated(cpu_readings(), "x"), harness="wall_clock")
    assert 0 < found.seconds < 1


def test_readings_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "readings.json"
    for readings in (cpu_readings(), gpu_readings("h200-sxm", "NVIDIA H200")):
        path.write_text(readings.dump())
        assert microbench.read(path) == readings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "not readings of a calibration"),
        ("{}", "not readings of a calibration.*kind: field required"),
        ('{"schema_version": 9}', "readings of version 9"),
        ("[1]", "not readings of a calibration"),
        ("[" * 100_000, "nested too deeply for readings of a calibration"),
        ('{"units": 1e999}', "1e999 is no finite number"),
        (cpu_readings().dump().replace("64000000000.0", '"much"'), "memory_bytes: .*number"),
    ],
)
def test_other_files_are_no_readings(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "readings.json"
    path.write_text(text)
    with pytest.raises(TableError, match=said):
        microbench.read(path)
    with pytest.raises(TableError, match="cannot be read"):
        microbench.read(tmp_path / "nothing.json")


# ---- The processor -------------------------------------------------------------------------------


def test_a_processor_knows_its_caches_and_its_name() -> None:
    caches = {1: (32 * KIB, 1), 2: (2 * MIB, 1), 3: (32 * MIB, 8)}
    name = "Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz"
    cpu = Cpu(name, 16, 32, caches, GIB, frozenset(), 2e9, None)
    assert cpu.slug == "intel-xeon-platinum-8480-16-cores"
    assert [cpu.cache_bytes(level) for level in (1, 2, 3, 4)] == [
        512 * KIB, 32 * MIB, 64 * MIB, None,
    ]  # fmt: skip
    assert cpu.last_level == 3


def test_memory_that_can_be_used_is_what_the_group_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_GROUP", tmp_path)
    free = environment.cpu().available_bytes
    assert free > 0
    (tmp_path / "memory.current").write_text("1000000\n")
    for most, expected in (("max", free), ("5000000", 4_000_000), ("1", 0)):
        (tmp_path / "memory.max").write_text(most)
        assert environment.cpu().available_bytes == pytest.approx(expected, rel=0.2)


def test_every_core_has_a_place_of_its_own() -> None:
    found = environment.cpu()
    assert len(found.places) == len(set(found.places)) == found.cores


# ---- The command and its charts ------------------------------------------------------------------


def test_the_command_writes_spec_and_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    from perfmodel.cli.calibrate import app

    monkeypatch.chdir(tmp_path)
    Path("readings.json").write_text(cpu_readings().dump())
    arguments = ["--readings", "readings.json", "--output", "box.yaml", "--chart", "box"]
    command = app
    command.main(args=[*arguments, "--format", "json"], standalone_mode=False)
    out = capsys.readouterr()
    document = json.loads(out.out)
    assert document["device"] == "box"
    assert {"measured.hbm_bandwidth.read"} <= {row["quantity"] for row in document["calibration"]}
    assert out.err.splitlines() == [
        "wrote box.yaml", "wrote box-bandwidth.svg", "wrote box-latency.svg",
    ]  # fmt: skip
    assert validate_file("box.yaml") == []
    first = Path("box-bandwidth.svg").read_bytes()
    command.main(args=arguments, standalone_mode=False)
    assert Path("box-bandwidth.svg").read_bytes() == first
    assert b"L3 32.0 MiB" in first
    bad = (("box.json", r"written as \.yaml"), ("none/box.yaml", "cannot write none/box.yaml"))
    for name, said in bad:
        with pytest.raises(OutputError, match=said):
            command.main(args=["--output", name], standalone_mode=False)


def test_readings_are_kept_whatever_becomes_of_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    from perfmodel.cli.calibrate import app
    from perfmodel.measured import calibrate

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(microbench, "take", lambda *_, **__: cpu_readings(busy="load average 9"))

    def refuse(*_: object) -> None:
        raise OutputError("no spec today")

    command = app
    arguments = ["--device", "cpu", "--save-readings", "kept.json"]
    with monkeypatch.context() as patch:
        patch.setattr(calibrate, "calibrated", refuse)
        with pytest.raises(OutputError, match="no spec today"):
            command.main(args=arguments, standalone_mode=False)
    assert microbench.read("kept.json") == cpu_readings(busy="load average 9")
    capsys.readouterr()
    command.main(args=arguments, standalone_mode=False)
    assert "calibrated on a busy machine: load average 9" in capsys.readouterr().err


def test_charts_draw_the_curves() -> None:
    from perfmodel.render.workingset import CHARTS, curve_chart

    curves = {name: curve.points for name, curve in cpu_readings().curves.items()}
    levels = [("L1", 64.0 * KIB), ("L2", 4.0 * MIB)]
    figure = curve_chart("bandwidth", curves, levels, "title").figure
    lines = {line.get_gid(): line for line in figure.axes[0].get_lines() if line.get_gid()}
    assert {"dots-0", "dots-1", "dots-2"} <= set(lines)
    np.testing.assert_allclose(lines["dots-1"].get_xydata(), curves["copy"])
    latency = curve_chart("latency", curves, levels, "title").figure.axes[0]
    assert latency.get_ylabel() == "Time per dependent load"
    gathers = {"gather": curves["latency"]}
    latency = curve_chart("latency", gathers, [], "title").figure.axes[0]
    assert latency.get_ylabel() == "Time per random load"
    for what in CHARTS:
        with pytest.raises(TableError, match=f"there is no {what} to draw"):
            curve_chart(what, {}, [], "title")


@pytest.mark.no_gpu
def test_gpu_probes_compute_what_they_time(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from perfmodel.measured import gpu_probes

    cells, at = gpu_probes.ring(4096, "cpu"), torch.zeros(1, dtype=torch.int64)
    seen = set()
    for _ in range(4):  # launches go on from each other: 32 lines, 8 a launch
        gpu_probes.chase[(1,)](cells, at, 8, num_warps=1)
        seen.add(int(at))
    assert len(seen) == 4
    assert int(at) == 0  # back at the first
    found = torch.empty(256)
    gpu_probes.multiply_add[(2,)](found, 3, 128, num_warps=4)
    sums = [torch.tensor(0.999 + i) for i in range(8)]
    for _ in range(3):
        sums = [value * 0.999 + 0.001 for value in sums]
    torch.testing.assert_close(found, torch.stack(sums).sum().expand(256))
    gpu_probes.exponentials[(2,)](found, 4, 128, num_warps=4)
    assert bool(torch.isfinite(found).all())
