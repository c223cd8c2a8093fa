"""Compiled code: generated from the rule that is read, and equal to NumPy's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.problem import pick, single
from perfmodel.compiled import variants
from perfmodel.compiled.build import compiler
from perfmodel.compiled.recording import UnrecordableError, record
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.predict import predict, predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.timing import memory

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
AGREES = 1e-12
_RANDOM = np.random.default_rng(7)


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache folder of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFMODEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(variants, "_KINDS", {})
        yield


def sizes(low: int, high: int, n: int = 300) -> np.ndarray:
    """Whole numbers spread evenly by their logarithm."""
    return np.exp(_RANDOM.uniform(np.log(low), np.log(high), n)).astype(np.int64)


def both(
    problem: Problem, device: str, *, builds: bool = True, **how: object
) -> tuple[Predictions, Predictions]:
    """NumPy's predictions and those of the recorded graph, compiled where it `builds`."""
    chip = load(device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variants.ENVIRONMENT, "off")
        reference = predict_arrays(problem, chip, **how)  # type: ignore[arg-type]
        patch.setenv(variants.ENVIRONMENT, "wait")
        variants._KINDS.clear()
        compiled = predict_arrays(problem, chip, **how)  # type: ignore[arg-type]
    (kind,) = variants._KINDS.values()
    assert kind.variants, "it was not recorded"
    for variant in kind.variants:
        assert (variant.run is not None) is builds
        assert not variant.faulty, "it differs from NumPy"
    return reference, compiled


def same(reference: Predictions, compiled: Predictions) -> None:
    """Fails unless all times agree, and where the same tile was chosen all else does.

    Two tiles may take the same time; then rounding decides which one is named.
    """
    for name in ("seconds", "low_seconds", "high_seconds", "useful_flops", "footprint_bytes"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(reference, name), AGREES)
    chosen = np.ones(len(reference), dtype=bool)
    for name, extents in reference.tile.items():
        chosen &= (extents == compiled.tile[name]) | np.isnan(extents)
    assert np.mean(chosen) > 0.97
    assert np.all(reference.limiter[chosen] == compiled.limiter[chosen])
    assert np.all(reference.runner_up[chosen] == compiled.runner_up[chosen])
    for table in ("terms", "flops", "bytes", "footprints", "dispatch"):
        ours, theirs = getattr(compiled, table), getattr(reference, table)
        assert ours.keys() == theirs.keys()
        for name, values in theirs.items():
            largest = np.max(np.abs(values), initial=0.0)
            np.testing.assert_allclose(
                ours[name][chosen], values[chosen], AGREES, AGREES * largest, err_msg=name
            )
    for name in ("waves", "occupancy"):
        ours, theirs = getattr(compiled, name), getattr(reference, name)
        np.testing.assert_allclose(ours[chosen], theirs[chosen], AGREES)
    for i in np.flatnonzero(chosen)[:20]:
        assert compiled.one(i).assumptions == reference.one(i).assumptions
        assert compiled.one(i).schedule == reference.one(i).schedule


def attention(**fixed: object) -> Attention:
    """Attention of many sizes."""
    groups = sizes(1, 16)
    queries = fixed.pop("seq_q", sizes(16, 8192))
    values = {"batch": sizes(1, 64), "heads_q": groups * sizes(1, 9), "heads_kv": groups,
              "seq_q": queries, "seq_kv": queries, "head_dim": 128}  # fmt: skip
    return Attention(**(values | fixed))  # type: ignore[arg-type]


def products(dtype: str = "bf16", **fixed: object) -> Matmul:
    """Products of many sizes."""
    values = {"m": sizes(1, 16384), "n": sizes(16, 16384), "k": sizes(16, 16384)}
    return Matmul(**(values | fixed), dtype=dtype)  # type: ignore[arg-type]


CASES = {
    "matmul": (products, "h100-sxm", {}),
    "matmul on a device with a memory-side cache": (products, "mi300x", {}),
    "batched matmul": (lambda: products(batch=sizes(2, 64)), "a100-sxm-80gb", {}),
    "fp8 on another device": (lambda: products("fp8"), "b200", {}),
    "fp32 on the vector unit": (lambda: products("fp32"), "l40s", {}),
    "weights of 4 bits": (lambda: products("w4a16"), "h100-sxm", {}),
    "matmul of a framework, on a board that was at rest": (
        lambda: products("fp32"), "a100-sxm-80gb",
        {"implementation": "torch-eager(2.1.0)", "harness": "cuda_events_eager"}),
    "prefill": (lambda: attention(causal=True), "h100-sxm", {}),
    "prefill without a mask": (lambda: attention(head_dim=64), "a100-sxm-80gb", {}),
    "prefill of flash2": (lambda: attention(causal=True), "l40s", {"implementation": "flash2"}),
    "decode": (lambda: attention(seq_q=1, seq_kv=sizes(16, 65536)), "h100-sxm", {}),
    "decode on another device": (lambda: attention(seq_q=1, seq_kv=sizes(16, 65536)), "mi300x", {}),
    "softmax": (lambda: Rowwise("softmax", sizes(1, 65536), sizes(16, 65536)), "h100-sxm", {}),
    "norm": (lambda: Rowwise("rmsnorm", sizes(1, 65536), sizes(16, 9000)), "mi300x", {}),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_compiled_code_gives_numpys_numbers(case: str) -> None:
    make, device, how = CASES[case]
    same(*both(make(), device, **how))


@needs_compiler
@pytest.mark.parametrize("case", ["matmul", "prefill", "decode", "softmax"])
def test_one_problem_has_all_that_arrays_have(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single call by compiled code builds its result by another way."""
    make, device, _ = CASES[case]
    problem, chip = pick(make(), np.arange(100)), load(device)
    monkeypatch.setenv(variants.ENVIRONMENT, "wait")
    variants._KINDS.clear()
    many = predict_arrays(problem, chip)
    for i in range(100):
        assert predict(single(problem, i), chip) == many.one(i)


@needs_compiler
def test_a_change_of_the_rule_changes_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Rowwise("softmax", sizes(1024, 65536), sizes(1024, 4096))
    before, _ = both(problem, "h100-sxm")
    seconds = memory.hbm_seconds
    monkeypatch.setattr(memory, "hbm_seconds", lambda *given: 3.0 * seconds(*given))
    reference, compiled = both(problem, "h100-sxm")
    assert np.all(reference.seconds > before.seconds)
    same(reference, compiled)


def test_no_formula_stands_in_the_writer() -> None:
    """What writes C knows operations on numbers, and not one noun or constant of the model."""
    room = files("perfmodel.compiled")
    nouns = {"seconds", "flops", "hbm", "l2", "wave", "block", "tile", "occupancy",
             "latency", "matrix", "bandwidth", "power_share", "units", "threads"}  # fmt: skip
    for name in ("writer.py", "graph.py", "bound.py", "primitives.c"):
        text = room.joinpath(name).read_text(encoding="utf-8")
        code = re.sub(r'"""[\s\S]*?"""|#.*|/\*[\s\S]*?\*/', "", text)
        words = {word.lower() for word in re.findall(r"[A-Za-z_]+\d*", code)}
        assert not words & nouns
        assert {float(n) for n in re.findall(r"\b\d+\.\d+", code)} <= {0.0, 1.0, 2.0, 3.0}


@needs_compiler
@pytest.mark.parametrize("device", ["h100-sxm", "mi300x", "b200", "t4"])
def test_bounds_never_lie_above_what_they_bound(device: str) -> None:
    """A search by bounds finds the least time of the whole menu, and notices no fault in them."""
    problem = Matmul(
        sizes(1, 10**5, 2000), sizes(1, 10**5, 2000), sizes(1, 10**5, 2000), dtype="fp16"
    )
    reference, compiled = both(problem, device)
    np.testing.assert_allclose(compiled.seconds, reference.seconds, AGREES)


@needs_compiler
def test_one_code_serves_devices_of_one_structure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFMODEL_CACHE", str(tmp_path))
    problem = Rowwise("softmax", sizes(1, 65536), sizes(16, 65536))
    for device in ("h100-sxm", "h200", "a100-sxm-80gb"):
        same(*both(problem, device))
    assert len(list((tmp_path / "compiled").glob("*.so"))) < 3


@needs_compiler
def test_problems_that_decide_otherwise_have_code_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Code that was recorded for several products is not used for single ones."""
    several = {"x": np.array([2.0, 3.0]), "y": np.array([1.0, 5.0])}

    def function(arrays: dict[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
        many = np.any(arrays["x"] > 1.0)
        return "", {"seconds": arrays["x"] * arrays["y"] if many else arrays["y"] + 7.0}

    monkeypatch.setenv(variants.ENVIRONMENT, "wait")
    monkeypatch.setattr(variants, "_KINDS", {})
    for x, seconds in ((several["x"], [2.0, 15.0]), (np.ones(2), [8.0, 12.0])):
        answer = variants.computed("a test", None, function, several | {"x": x}, 4096)
        assert answer is not None
        assert list(answer[1]["seconds"]) == seconds
    (kind,) = variants._KINDS.values()
    assert [variant.decisions[-1] for variant in kind.variants] == [True, False]
    assert kind.variants[0].results(several | {"x": np.ones(2)}, 4096) is None


def test_a_condition_on_a_menus_columns_is_not_recorded() -> None:
    """A guard has one value a problem; columns and problems do not broadcast."""
    menu = np.array([[1.0, 2.0, 4.0]])

    def function(arrays: dict[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
        columns = arrays["x"][:, None] * menu
        columns = columns + 1.0 if np.any(columns > 8.0) else columns
        return "", {"seconds": columns.max(axis=1)}

    with pytest.raises(UnrecordableError, match="columns of a menu"):
        record(function, {"x": np.array([1.0, 5.0])})


@pytest.mark.parametrize("branch", [
    lambda x: x if float(x.max()) > 3.0 else 2.0 * x,
    lambda x: x * np.array([1.0, 2.0]),
    lambda x: x[:1] + x,
])  # fmt: skip
def test_what_depends_on_values_of_problems_is_not_recorded(branch: object) -> None:
    with pytest.raises(UnrecordableError):
        record(lambda arrays: ("", {"y": branch(arrays["x"])}), {"x": np.array([1.0, 5.0])})  # type: ignore[operator]


@needs_compiler
def test_wrong_code_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first results are compared with NumPy's."""
    calls: list[int] = []

    def unsteady(arrays: dict[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
        calls.append(1)
        return "", {"seconds": arrays["x"] * float(len(calls))}

    monkeypatch.setenv(variants.ENVIRONMENT, "wait")
    assert variants.computed("unsteady", None, unsteady, {"x": np.array([1.0, 2.0])}, 4) is None


@pytest.mark.parametrize(
    "case",
    ["matmul", "matmul of a framework, on a board that was at rest", "prefill", "decode",
     "softmax"],
)  # fmt: skip
def test_numpy_computes_the_same_graph_where_nothing_compiles(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perfmodel.compiled import build

    monkeypatch.setattr(build, "compiler", lambda: None)
    monkeypatch.setenv("PERFMODEL_CACHE", "/nonexistent")
    monkeypatch.setenv(variants.ENVIRONMENT, "auto")
    assert "no C compiler" in variants.described()
    make, device, how = CASES[case]
    same(*both(make(), device, builds=False, **how))


def test_a_single_prediction_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variants.ENVIRONMENT, "auto")
    variants._KINDS.clear()
    predict_arrays(Matmul(4096, 4096, 4096), load("h100-sxm"))
    predict_arrays(pick(attention(causal=True), np.arange(5)), load("h100-sxm"))
    assert [kind.variants for kind in variants._KINDS.values()] == [[], []]


def test_arrays_like_a_recorded_one_have_the_type_that_is_asked_for() -> None:
    def function(arrays: dict[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
        never, x = np.zeros_like(arrays["x"], bool), arrays["x"]
        assert never.dtype == bool
        assert np.full_like(x, 3, int).dtype == int
        return "", {"y": np.where(never, 2.0 * x, x), "x": x}

    _, _, nodes, _ = record(function, {"x": np.array([1.0, 5.0])})
    assert nodes["y"] == nodes["x"]


@pytest.mark.parametrize("error", [UnrecordableError, TypeError, ValueError])
def test_what_cannot_be_recorded_is_left_to_numpy(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    from perfmodel.compiled.recording import Recorded

    def function(arrays: dict[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
        if isinstance(arrays["x"], Recorded):
            raise error("a thing that recording numbers do not do")
        return "", {"seconds": arrays["x"]}

    monkeypatch.setenv(variants.ENVIRONMENT, "wait")
    assert variants.computed(error, None, function, {"x": np.array([1.0, 2.0])}, 4) is None


def test_an_unknown_mode_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variants.ENVIRONMENT, "on")
    with pytest.raises(ProblemError, match="PERFMODEL_COMPILED is 'on'; write auto, wait or off"):
        predict_arrays(Matmul(64, 64, 64), load("h100-sxm"))
