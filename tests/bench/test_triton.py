"""Triton's autotuner by the model: tiles of one's own, ranking, pruning, and never an exception."""

import csv
import itertools
import re
import warnings

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

import perfmodel.triton as pm
from perfmodel import Attention, Matmul, PerfmodelError, Rowwise, load, predict, predict_arrays
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.operators.owntile import TileDoesNotFit
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.registry import kernel
from perfmodel.triton import ranking, running
from perfmodel.triton.description import Description

H100, A100, MI300X = (load(name) for name in ("h100-sxm", "a100-sxm4-80gb", "mi300x"))
PRODUCT = Matmul(4096, 4096, 4096, dtype="fp16")
MENU = [
    {"BM": m, "BN": n, "BK": k, "num_warps": w, "num_stages": s}
    for m, n, k, w, s in itertools.product(
        (32, 64, 128, 256), (32, 64, 128, 256), (32, 64), (4, 8), (2, 3, 4)
    )
]
TILES = pm.matmul("M", "N", "K", dtype="fp16", tile=("BM", "BN", "BK"))
SIZES = {"M": 4096, "N": 4096, "K": 4096}


# --- tiles of one's own in `predict` ---------------------------------------------------------


def test_arrays_of_tiles_are_predicted_as_each_of_them():
    tiles = {"m": [64, 128, 256], "n": [64, 256, 128], "k": [64, 32, 64], "stages": [3, 4, 2]}
    together = predict_arrays(PRODUCT, H100, implementation="triton", tile=tiles)
    for i in range(3):
        one = {name: values[i] for name, values in tiles.items()}
        alone = predict(PRODUCT, H100, implementation="triton", tile=one)
        assert alone.seconds == pytest.approx(together.seconds[i], rel=1e-12)
        assert {name: alone.tile[name] for name in one} == one


@given(
    st.sampled_from((32, 64, 128)), st.sampled_from((32, 64, 128)), st.sampled_from((1024, 4096))
)
def test_the_bytes_at_l2_are_those_of_the_counting_rule_at_that_tile(m, n, size):
    # Each operand as often as there are tiles along the other axis, the result once.
    found = predict(Matmul(size, size, size, dtype="fp16"), A100, tile={"m": m, "n": n, "k": 32})
    expected = 2.0 * size**3 * (1 / m + 1 / n) + 2.0 * size**2
    assert found.bytes["l2"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("problem", "tile"),
    [
        (Attention(1, 32, 8, 4096, 4096, 128, causal=True), {"rows": 128, "keys": 64}),
        (Attention(1, 32, 8, 4096, 4096, 128, direction="bwd"), {"rows": 64, "keys": 64}),
        (Rowwise("softmax", 4096, 4096, "bf16"), {"columns": 4096, "warps": 8}),
    ],
)
def test_other_operators_take_tiles_too(problem, tile):
    found = predict(problem, H100, implementation="triton", tile=tile)
    assert {name: found.tile[name] for name in tile} == tile
    assert found.low_seconds <= found.seconds <= found.high_seconds


def test_a_row_that_is_streamed_takes_longer_than_one_that_is_held():
    rows = Rowwise("softmax", 4096, 65536, "bf16")
    held, streamed = (
        predict(rows, H100, implementation="triton", tile={"columns": columns, "warps": 16})
        for columns in (65536, 4096)
    )
    assert streamed.bytes["hbm"] > held.bytes["hbm"]
    assert streamed.seconds > held.seconds


@cases
def test_a_tile_with_no_meaning_is_refused_in_one_line(tile, said):
    with pytest.raises(PerfmodelError, match=re.escape(said)) as refused:
        predict(PRODUCT, H100, tile=tile)
    assert "\n" not in str(refused.value)


def test_what_does_not_fit_says_which():
    tile = {"m": [64, 256, 64], "n": [64, 256, 64], "k": 128, "stages": 4}
    with pytest.raises(TileDoesNotFit) as refused:
        predict_arrays(PRODUCT, H100, tile=tile)
    assert refused.value.fits.tolist() == [True, False, True]


def test_tiles_on_the_command_line(cli):
    code, out, _ = cli(
        *("predict", "gemm", "-d", "h100-sxm", "--format", "csv"),
        *("--tile", "m=128,n=256,k=64,warps=8,stages=3", "--tile", "m=64,n=64"),
    )
    first, second = csv.DictReader(out.splitlines())
    assert code == 0
    assert [float(first[f"tile_{name}"]) for name in "mnk"] == [128, 256, 64]
    assert (float(first["tile_stages"]), second["tile_stages"]) == (3, "")
    for given_, said in (
        ("m=128", "needs its n"),
        ("m", "is not DIMENSION=SIZE"),
        ("m=1,n=2,m=3", "choose one"),
        ("m=1,n=2,x=3", "no dimension"),
    ):
        code, _, err = cli("predict", "gemm", "-d", "h100-sxm", "--tile", given_)
        assert code == 2
        assert said in err
        assert err.count("\n") == 1


# --- ranking ---------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm", "b200", "mi300x"])
def test_a_rank_is_in_the_order_of_the_predictions(device):
    ranked = pm.rank(MENU, TILES, SIZES, device=device)
    assert sorted(map(str, MENU)) == sorted(str(item.config) for item in ranked)
    seconds = [item.seconds for item in ranked]
    assert seconds == sorted(seconds)
    assert all(bool(item.reason) == np.isinf(item.seconds) for item in ranked)
    best = ranked[0].config
    tile = {"m": best["BM"], "n": best["BN"], "k": best["BK"], "warps": best["num_warps"]}
    stages = running.buffered(
        load(device),
        {"m": np.array([best["BM"]]), "stages": np.array([float(best["num_stages"])])},
    )["stages"][0]
    alone = predict(PRODUCT, load(device), implementation="triton", tile=tile | {"stages": stages})
    assert alone.seconds == pytest.approx(ranked[0].seconds, rel=1e-12)


def test_a_menu_takes_two_calls_of_the_model_at_the_most(monkeypatch):
    calls = []

    def counted(*args, **kwargs):
        calls.append(args)
        return predict_arrays(*args, **kwargs)

    monkeypatch.setattr(ranking, "predict_arrays", counted)
    assert len(MENU) == 192
    assert any(item.reason for item in pm.rank(MENU, TILES, SIZES, device=H100))
    assert len(calls) <= 2


def test_what_cannot_run_comes_last_and_is_never_chosen():
    wide = {"BM": 256, "BN": 256, "BK": 128, "num_warps": 8, "num_stages": 4}
    small = {"BM": 64, "BN": 64, "BK": 32, "num_warps": 4, "num_stages": 2}
    ranked = pm.rank([wide, small], TILES, SIZES, device=H100)
    assert [item.config for item in ranked] == [small, wide]
    assert pm.choose([wide, small], TILES, SIZES, device="h100-sxm") == small
    with pytest.raises(ProblemError, match="none of 1 configs can run"):
        pm.choose([wide], TILES, SIZES, device=H100)
    with pytest.raises(ProblemError, match="no configs"):
        pm.choose([], TILES, SIZES, device=H100)


def described(fact):
    """The description, config and target of a compiled binary of plain code; else None."""
    config = dict(re.findall(r"(\w+)='?([^,()']+)", fact.config))
    problem = dict(re.findall(r"(\w+)='?([^,()']+)", fact.problem))
    fused = config.get("specialise") == "True" or config.get("descriptors", "none") not in (
        "none",
        "False",
    )
    if fused or problem["dtype"] not in ("bf16", "fp16", "fp8"):
        return None
    if fact.kernel not in ("matmul", "attention-tiled"):
        return None
    dtype = problem["dtype"]
    menu = {"num_warps": int(config["warps"]), "num_stages": int(config["stages"])}
    if fact.kernel == "matmul":
        fields = {name: int(config[name]) for name in ("bm", "bn", "bk")}
        return pm.matmul(512, 512, 512, dtype=dtype, tile=("bm", "bn", "bk")), fields | menu
    if fact.kernel == "attention-tiled" and config["pack"] == "1":
        fields = {name: int(config[name]) for name in ("br", "bc")}
        shape = pm.attention(8, 512, int(problem["head_dim"]), dtype=dtype, tile=("br", "bc"))
        return shape, fields | menu
    return None


def test_no_config_is_dropped_whose_binary_is_known_to_fit(monkeypatch):
    """Every compiled binary of plain code fits and spills nothing: the bounds alone keep it."""
    monkeypatch.setattr(running, "_known", lambda _: {})
    kept = 0
    for fact in compilefacts.table().rows():
        found = described(fact)
        if found is None or (fact.target == "gfx942" and fact.kernel == "attention-tiled"):
            continue  # there queries lie in registers, which the model counts as shared memory
        description, config = found
        (item,) = pm.rank([config], description, device=TARGETS[fact.target].device)
        assert item.reason == "", (fact.target, fact.config)
        kept += 1
    assert kept > 100


def test_buffers_are_those_of_the_compiled_binaries():
    """Shared memory of compiled products follows from their tiles and stages."""

    compared = 0
    for fact in compilefacts.table().rows():
        found = described(fact)
        if found is None or fact.kernel != "matmul" or "m=1111" in fact.problem:
            continue
        config = found[1]
        tiles = {"m": np.array([config["bm"]]), "stages": np.array([float(config["num_stages"])])}
        stages = running.buffered(load(TARGETS[fact.target].device), tiles)["stages"][0]
        width = 1 if "fp8" in fact.problem else 2
        expected = (config["bm"] + config["bn"]) * config["bk"] * width * stages
        assert fact.shared_bytes == pytest.approx(expected, rel=0.01), (fact.target, fact.config)
        compared += 1
    assert compared > 50


def test_a_binary_that_spills_is_dropped_and_one_that_does_not_is_kept(monkeypatch):
    known = {"BM": 64, "BN": 64, "BK": 32, "num_warps": 4, "num_stages": 3}
    place = ("sm_90", "fp16", 64.0, 64.0, 32.0, 4.0, 3.0)
    monkeypatch.setattr(running, "_known", lambda _: {place: False})
    (item,) = pm.rank([known], TILES, SIZES, device=H100)
    assert item.reason == "its registers spill"
    large = {"BM": 128, "BN": 256, "BK": 32, "num_warps": 4, "num_stages": 3}
    (item,) = pm.rank([large], TILES, SIZES, device=H100)
    assert item.reason == "its registers spill"  # 256 sums a thread, by the bound
    place = ("sm_90", "fp16", 128.0, 256.0, 32.0, 4.0, 3.0)
    monkeypatch.setattr(running, "_known", lambda _: {place: True})
    (item,) = pm.rank([large], TILES, SIZES, device=H100)
    assert item.reason == ""


def test_a_block_of_attention_holds_sums_of_its_result_and_its_scores():
    shape = pm.attention(8, 512, 64, dtype="fp16", tile=("br", "bc"))
    tiles = {"rows": np.array([128.0, 64.0]), "keys": np.array([32.0, 256.0])}
    problem = shape.problem({"seq": 512})
    assert list(shape.accumulators(problem, tiles)) == [128 * (64 + 32), 64 * (64 + 256)]


def test_the_compiler_spills_where_the_bound_says_so():
    pytest.importorskip("triton")
    from perfmodel_kernels.matmul_config import MatmulConfig

    from perfmodel.proof.compiled.compiled import compile_kernel

    config = MatmulConfig(bm=256, bn=128, bk=32, warps=4, stages=2)
    (fact,) = compile_kernel(kernel("matmul"), PRODUCT, config, TARGETS["sm_80"]).facts()
    assert fact.spill_bytes > 0
    asked = {"BM": 256, "BN": 128, "BK": 32, "num_warps": 4, "num_stages": 2}
    (item,) = pm.rank([asked], TILES, SIZES, device=A100)
    assert item.reason == "its registers spill"


# --- inside Triton's own autotuner -----------------------------------------------------------


@pytest.fixture
def tuned():
    """A function that makes Triton's own autotuner with some `prune_configs_by`."""
    triton = pytest.importorskip("triton")
    from triton.runtime.autotuner import Autotuner

    configs = [
        triton.Config(
            {name: config[name] for name in ("BM", "BN", "BK")},
            num_warps=config["num_warps"],
            num_stages=config["num_stages"],
        )
        for config in MENU
    ]

    def make(prune_configs_by):
        names = ["a_ptr", "M", "N", "K"]
        function = kernel("matmul").launches(PRODUCT, kernel("matmul").configs[0])[0].function
        tuner = Autotuner(
            function, names, configs, ["M"], None, None, prune_configs_by=prune_configs_by
        )
        tuner.nargs = {"a_ptr": np.zeros(1, np.float16), **SIZES}
        return tuner

    return make


def test_tritons_autotuner_keeps_the_best_k(tuned):
    tuner = tuned(pm.prune(TILES, top_k=8, device="h100-sxm"))
    kept = tuner.prune_configs({})
    assert len(kept) == 8
    best = [item.config for item in pm.rank(tuner.configs, TILES, SIZES, device=H100)]
    assert kept == best[:8]


def test_the_type_is_that_of_the_tensor(tuned):
    named = pm.matmul("M", "N", "K", data="a_ptr", tile=("BM", "BN", "BK"))
    tuner = tuned(pm.prune(named, device="h100-sxm"))
    assert tuner.prune_configs({}) == tuned(pm.prune(TILES, device="h100-sxm")).prune_configs({})
    assert named.problem({**SIZES, "a_ptr": np.zeros(1, np.float32)}).dtype == "tf32"


@pytest.mark.parametrize(
    ("description", "device"),
    [
        (TILES, "no-such-device"),
        (pm.matmul("M", "N", "missing", dtype="fp16", tile=("BM", "BN", "BK")), "h100-sxm"),
        (pm.matmul("M", "N", "K", dtype="fp16"), "h100-sxm"),
        (pm.matmul("M", "N", "K", data="M", tile=("BM", "BN", "BK")), "h100-sxm"),
        (pm.matmul("M", "N", "a_ptr", dtype="fp16", tile=("BM", "BN", "BK")), "h100-sxm"),
    ],
)
def test_tuning_never_raises_and_warns_once(tuned, description, device):
    tuner = tuned(pm.prune(description, device=device))
    with pytest.warns(RuntimeWarning, match="perfmodel keeps every config"):
        assert tuner.prune_configs({}) == tuner.configs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuner.prune_configs({}) == tuner.configs


def test_without_any_that_can_run_all_stay(tuned):
    tuner = tuned(pm.prune(TILES, device="gtx1080"))
    assert 1 <= len(tuner.prune_configs({})) <= len(MENU)
    wide = [{"BM": 256, "BN": 256, "BK": 256, "num_warps": 8, "num_stages": 4}]
    prune = pm.prune(TILES, device="h100-sxm")["early_config_prune"]
    assert prune(wide, SIZES) == wide


@pytest.mark.parametrize("top_k", [0, 0.5, True, "8", -1])
def test_top_k_is_a_number_of_configs(top_k):
    with pytest.raises(ProblemError, match="top_k must be a whole number of configs"):
        pm.prune(TILES, top_k=top_k)


# --- descriptions ----------------------------------------------------------------------------


def test_descriptions_make_the_problems_that_they_say():
    arguments = {"Z": 4, "H": 32, "N_CTX": 4096, "STAGE": 3}
    shape = pm.attention(
        "H", "N_CTX", 128, batch="Z", kv_heads=8, causal="STAGE", dtype="bf16"
    ).problem(arguments)
    assert shape == Attention(4, 32, 8, 4096, 4096, 128, causal=True, dtype="bf16")
    assert pm.rows("softmax", 128, 4096, dtype="bf16").problem({}) == Rowwise(
        "softmax", 128, 4096, "bf16"
    )
    assert pm.matmul(1, 2, 3, dtype="fp8", batch=4).problem({}) == Matmul(1, 2, 3, 4, "fp8")


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: TILES.tiles([{"BM": 1}]), UnknownName),
        (lambda: TILES.tiles(["BM=1"]), ProblemError),
        (lambda: TILES.problem({"M": 1, "N": 2}), UnknownName),
        (lambda: pm.matmul(1, 2, 3).problem({}), ProblemError),
        (lambda: pm.matmul("x", 2, 3, dtype="fp16").problem({"x": "wide"}), ProblemError),
        (lambda: pm.rank(MENU, TILES, SIZES), PerfmodelError),  # no GPU here
    ],
)
def test_a_description_with_no_meaning_is_refused_in_one_line(act, error, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(error) as refused:
        act()
    assert "\n" not in str(refused.value)


def test_a_device_is_found_by_the_name_of_its_driver(monkeypatch):
    torch = pytest.importorskip("torch")
    from types import SimpleNamespace

    from perfmodel.triton import ranking

    ranking.current.cache_clear()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    named = SimpleNamespace(name="NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: named)
    assert ranking.current().slug == "h100-sxm"
    ranking.current.cache_clear()


def test_the_room_loads_neither_torch_nor_triton():
    import subprocess
    import sys

    code = (
        "import sys, perfmodel.triton as pm\n"
        "pm.choose([{'BLOCK_M': 64, 'BLOCK_N': 64, 'BLOCK_K': 32}], "
        "pm.matmul(64, 64, 64, dtype='fp16'), device='h100-sxm')\n"
        "assert isinstance(pm.Description, type)\n"
        "assert not {'torch', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert issubclass(Description, object)
