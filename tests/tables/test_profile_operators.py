"""What profiles record of operators: bytes of each tensor in its own type, and exact products."""

import json
import math

import pytest
from cases import cases, listed
from hypothesis import given
from hypothesis import strategies as st
from profilefiles import Ran, operator_trace
from refusing import refused

from perfmodel.collectives import Collective, predict_collective
from perfmodel.count import compulsory_bytes
from perfmodel.hardware import load, systems
from perfmodel.profile import formats, kernelnames, operations
from perfmodel.profile.matching import NAME, SHAPE, grouped
from perfmodel.profile.timeline import Recorded
from perfmodel.validation.profile import judge

BF16 = "c10::BFloat16"
WIDTHS = {BF16: 2, "c10::Half": 2, "float": 4, "double": 8, "bool": 1, "long int": 8,
          "unsigned char": 1}  # fmt: skip
FLOATS = (BF16, "float")
DEVICE = load("h100-sxm")


def judged(tmp_path, *ran, system=None):
    timeline = formats.read(operator_trace(list(ran), tmp_path / "trace.json"))
    return judge(timeline, grouped(timeline), DEVICE, system)


def line(tmp_path, *ran, **given):
    (found,) = judged(tmp_path, *ran, **given).lines
    return found


def moved(tmp_path, name, dims, types, given=(), **said):
    found = line(tmp_path, Ran(name, dims, types, list(given), **said))
    assert found.explained, found.reason
    return found.bytes


# ---- Laws ----------------------------------------------------------------------------------------

TENSOR = st.sampled_from(sorted(WIDTHS))
SHAPE_OF = st.lists(st.integers(2, 40), min_size=1, max_size=4)


def bytes_of(recorded):
    """Compulsory bytes of a recorded operator's problems."""
    found = operations.problem(recorded)
    if found.works:
        return sum(float(compulsory_bytes(problem)) for problem, _ in found.works)
    row = found.row
    width = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "int8": 1}[row["dtype"]]
    return row["rows"] * row["cols"] * (row["inputs"] + row["outputs"]) * width


@given(SHAPE_OF, TENSOR, TENSOR)
def test_a_copy_moves_its_source_and_its_target_in_their_own_types(shape, to, source):
    recorded = Recorded("aten::copy_", (tuple(shape),) * 2, (to, source))
    assert bytes_of(recorded) == math.prod(shape) * (WIDTHS[to] + WIDTHS[source])


@given(SHAPE_OF, st.lists(st.sampled_from(FLOATS), min_size=1, max_size=3), st.data())
def test_a_map_moves_each_operand_in_its_own_type(shape, types, data):
    """Also where an operand is broadcast; up to a 64th, which small operands are left out to."""
    shapes = [shape] + [
        [n if data.draw(st.booleans()) else 1 for n in shape] for _ in types[1:]
    ]  # fmt: skip
    name = {1: "aten::exp", 2: "aten::mul", 3: "aten::addcmul"}[len(types)]
    recorded = Recorded(name, tuple(map(tuple, shapes)), tuple(types))
    out = "float" if "float" in types else BF16
    wanted = math.prod(shape) * WIDTHS[out] + sum(
        math.prod(each) * WIDTHS[dtype] for each, dtype in zip(shapes, types, strict=True)
    )
    assert bytes_of(recorded) == pytest.approx(wanted, rel=1 / 32)


@given(SHAPE_OF, st.integers(2, 9))
def test_what_is_repeated_is_read_once(shape, times):
    whole = (times, *shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    out = [math.prod(whole[i + 1 :]) for i in range(len(whole))]
    recorded = Recorded("aten::copy_", (whole, whole), (BF16, BF16),
                        strides=(tuple(out), (0, *strides)))  # fmt: skip
    wanted = (times + 1) * math.prod(shape) * 2
    assert bytes_of(recorded) == pytest.approx(wanted, rel=1 / 32)


@given(
    st.integers(1, 4), st.integers(1, 3), st.sampled_from((1, 2, 4)), st.integers(2, 5),
    st.integers(2, 5), st.integers(1, 4), st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_each_direction_of_a_convolution_multiplies_as_often(
    batch, space, groups, into, out, taps, stride, transposed
):
    """Once for each coarse pixel, tap and pair of channels of a group."""
    image = (batch, into * groups, *(9,) * space)
    pixels = (9 - 1) * stride + taps if transposed else (9 - taps) // stride + 1
    channels = out * groups
    weight = (image[1], out, *(taps,) * space) if transposed else (channels, into, *(taps,) * space)
    given_ = ["", "", "", f"{[stride] * space}", f"{[0] * space}", f"{[1] * space}",
              str(transposed), f"{[0] * space}", str(groups)]  # fmt: skip
    forward = Recorded("aten::convolution", (image, weight, *((),) * 7), (BF16,) * 2, tuple(given_))
    made = (batch, channels, *(pixels,) * space)
    asked = [*["", "", "", "[0]"], *given_[3:], "[True, True, False]"]
    backward = Recorded("aten::convolution_backward", (made, image, weight, *((),) * 8),
                        (BF16,) * 3, tuple(asked))  # fmt: skip
    coarse = math.prod(image[2:] if transposed else made[2:])
    wanted = 2 * batch * coarse * taps**space * into * out * groups
    works = [*operations.problem(forward).works, *operations.problem(backward).works]
    assert len(works) == 3
    for problem, reuse in works:
        # One of them has what is left of the products as a whole number.
        assert problem.flops() == pytest.approx(wanted, rel=0.5 / problem.k + 1e-9)
        assert 0 <= reuse["A"][0].share < 1


# ---- Worked examples -----------------------------------------------------------------------------

TABLE, ROWS = [128256, 4096], 4096


@pytest.mark.parametrize(
    ("name", "dims", "types", "said"),
    [
        ("aten::embedding", [TABLE, [1, ROWS], [], [], []], [BF16, "long int"], ["", "", "-1"]),
        ("aten::index_select", [TABLE, [], [ROWS]], [BF16, "", "long int"], ["", "0", ""]),
        ("aten::index", [TABLE, [[ROWS]]], [BF16, ""], []),
    ],
)  # fmt: skip
def test_of_a_table_the_rows_are_read(tmp_path, name, dims, types, said):
    found = line(tmp_path, Ran(name, dims, types, said, us=25))
    assert found.bytes == pytest.approx(2 * ROWS * 4096 * 2, rel=1e-3)  # read and written
    assert 0.7 < found.measured_us / found.predicted_us < 1.5  # 33.6 MB each way at 3 TB/s


def test_numbers_whose_extents_are_not_recorded_leave_a_gather_unknown(tmp_path):
    assert not line(tmp_path, Ran("aten::index", [TABLE, []], [BF16, ""])).explained


MIB = 1 << 20
HALF = 4096 * 4096 * 2  # 16 Mi elements of two bytes


@pytest.mark.parametrize(
    ("name", "dims", "types", "said", "wanted"),
    [
        ("aten::copy_", [[4096, 4096]] * 2, ["float", BF16], ["", "", "False"], 3 * HALF),
        ("aten::_to_copy", [[4096, 4096], []], ["float", "Scalar"], ["", "15"], 3 * HALF),
        ("aten::fill_", [[4096, 4096], []], [BF16, "Scalar"], ["", "0."], HALF),
        ("aten::gt", [[4096, 4096], []], [BF16, "Scalar"], ["", "0"], 1.5 * HALF),
        ("aten::where", [[4096, 4096]] * 3, ["bool", BF16, BF16], [], 3.5 * HALF),
        ("aten::masked_fill_", [[4096, 4096]] * 2 + [[]], [BF16, "bool", ""], [], 2.5 * HALF),
        ("aten::sum", [[4096, 4096], [], [], []], [BF16], ["", "[-1]", "False", ""], HALF),
        ("aten::sum", [[4096, 4096], []], [BF16, ""], ["", "6"], HALF),
        ("aten::mean", [[4096, 4096], [], [], []], [BF16], ["", "[0]", "True", ""], HALF),
        ("aten::amax", [[4096, 4096], [], []], [BF16], ["", "[1]", "False"], HALF),
        ("aten::max", [[4096, 4096]], [BF16], [], HALF),
        ("aten::max", [[4096, 4096]] * 2, [BF16, BF16], [], 3 * HALF),
        ("aten::linalg_vector_norm", [[4096, 4096]] + [[]] * 4, [BF16],
         ["", "2", "", "False", ""], HALF),
        ("aten::sum", [[4096, 1024, 4], [], [], []], [BF16], ["", "[-1]", "False", ""],
         1.25 * HALF),
        ("aten::cat", [[[4096, 1024], [4096, 3072]], []], ["TensorList", ""], ["", "1"], 2 * HALF),
        ("aten::gelu_backward", [[4096, 4096]] * 2 + [[]], [BF16, BF16, ""], [], 3 * HALF),
        ("aten::_softmax", [[4096, 4096], [], []], [BF16, "", ""], ["", "-1", "True"], 3 * HALF),
        ("aten::_softmax_backward_data", [[4096, 4096]] * 2 + [[], []], [BF16, BF16],
         ["", "", "-1", "15"], 3 * HALF),
        ("aten::native_layer_norm_backward",
         [[4096, 4096]] * 2 + [[], [4096, 1], [4096, 1], [4096], [4096], []],
         [BF16, BF16, "", "float", "float", BF16, BF16], [], 3 * HALF),
        ("aten::embedding_dense_backward", [[4096, 4096], [4096], [], [], []], [BF16, "long int"],
         ["", "", "128256", "-1", "False"], 3 * HALF),
        ("aten::gather", [[4096, 128256], [], [4096, 4096], []], [BF16, "", "long int"],
         ["", "1", "", "False"], 6 * HALF),
    ],
)  # fmt: skip
def test_bytes_of_operators(tmp_path, name, dims, types, said, wanted):
    assert moved(tmp_path, name, dims, types, said) == pytest.approx(wanted, rel=0.005)


ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
    "FusedAdamMathFunctor<{}, 4>>"
)


@pytest.mark.parametrize(("type_", "width"), [("float", 4), ("c10::BFloat16", 2)])
def test_lists_of_an_optimiser_have_the_type_of_its_kernel(tmp_path, type_, width):
    lists = [[[4096, 4096], [4096]]] * 4
    dims, types = [*lists, [], [[], []], *[[]] * 9], ["TensorList"] * 4
    found = moved(tmp_path, "aten::_fused_adamw_", dims, types, kernel=ADAM.format(type_))
    # Weights, gradients, two moments; of these all but the gradients are written.
    assert found == 7 * (4096 * 4096 + 4096) * width
    dims = [[[4096, 4096], [4096]], []]
    kernel = ADAM.format(type_).replace("FusedAdamMath", "BinaryOpScalar")
    found = moved(tmp_path, "aten::_foreach_mul_", dims, ["TensorList", "Scalar"], kernel=kernel)
    assert found == 2 * (4096 * 4096 + 4096) * width


CONVOLUTION = [[32, 64, 56, 56], [64, 64, 3, 3], *[[]] * 7]
GIVEN = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]


def test_a_convolution_is_an_implicit_product_that_reads_its_image_once(tmp_path):
    found = line(tmp_path, Ran("aten::convolution", CONVOLUTION, [BF16, BF16], GIVEN))
    ((problem, _),) = found.group.works
    assert (problem.m, problem.n, problem.k) == (32 * 56 * 56, 64, 64 * 9)
    image = 32 * 64 * 56 * 56 * 2
    assert found.bytes == pytest.approx(2 * image + 64 * 64 * 9 * 2)


def test_a_depthwise_convolution_passes_its_images_once(tmp_path):
    dims = [[32, 256, 56, 56], [256, 1, 3, 3], *[[]] * 5]
    said = ["", "", "[3, 3]", "", "[1, 1]", "[1, 1]", "[1, 1]"]
    image = 32 * 256 * 56 * 56 * 2
    found = moved(tmp_path, "aten::_conv_depthwise2d", dims, [BF16, BF16], said)
    assert found == pytest.approx(2 * image, rel=1e-3)


def test_gradients_of_a_convolution_that_were_not_asked_for_are_not_counted(tmp_path):
    dims = [CONVOLUTION[0], *CONVOLUTION[:2], *[[]] * 8]
    times = {}
    for asked in ("[True, True, False]", "[False, True, False]", "[True, False, False]"):
        said = ["", "", "", "[0]", *GIVEN[3:], asked]
        ran = Ran("aten::convolution_backward", dims, [BF16] * 3, said)
        times[asked] = line(tmp_path, ran).predicted_us
    both, *each = times.values()
    assert both == pytest.approx(sum(each))


@cases
def test_attention_backward_is_known_by_shape(tmp_path, name, place, shape):
    said = [""] * place + ["True"]
    ran = Ran(f"aten::{name}", [shape] * 5, [BF16] * 5, said, "flash_bwd_kernel")
    found = line(tmp_path, ran)
    wanted = {"op": "attention", "direction": "bwd", "heads_q": 32, "seq_q": 1024, "causal": True}
    assert wanted.items() <= found.group.row.items()
    assert found.explained


def test_sequences_of_many_lengths_are_not_taken_as_one(tmp_path):
    ran = Ran("aten::_flash_attention_forward", [[8192, 32, 128]] * 3 + [[9], [9]], [BF16] * 3)
    assert not line(tmp_path, ran).explained


def test_a_copy_between_host_and_device_is_no_stream_of_memory(tmp_path):
    ran = Ran("aten::copy_", [[4096, 4096]] * 2, [BF16, BF16], [],
              "Memcpy HtoD (Pageable -> Device)", 900)  # fmt: skip
    assert line(tmp_path, ran).group.how == NAME


# ---- The table and torch's own schemas -----------------------------------------------------------

NAMED = listed(__file__, "NAMED")


def test_arguments_stand_where_torchs_schemas_have_them():
    torch = pytest.importorskip("torch")
    checked = 0
    document = operations._document()
    for kind in ("attention", "convolutions", "convolution_gradients", "gathers", "rows"):
        for entry in document[kind]:
            for name in entry["names"]:
                if not name.startswith("aten::"):
                    continue
                packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
                if packet is None:
                    continue
                schema = getattr(packet, packet.overloads()[0])._schema
                for key, meant in NAMED.items():
                    if key in entry:
                        assert schema.arguments[entry[key]].name in meant, (name, key)
                        checked += 1
    assert checked > 60


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_torchs_profiler_records_what_is_read(tmp_path, transposed, groups):
    """A profile of torch's own: operations as its counter has them."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    kind = torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d
    layer, image = kind(16, 32, 3, padding=1, stride=2, groups=groups), torch.randn(2, 16, 10, 10)
    with FlopCounterMode(display=False) as counter:
        layer(image)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        layer(image)
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    matched = grouped(formats.read(tmp_path / "t.json"))
    works = [work for group in matched.groups for work in group.works]
    assert len(works) == 1
    wanted = counter.get_total_flops()
    assert works[0][0].flops() == pytest.approx(wanted, rel=0.5 / works[0][0].k)


# ---- Kernels without an operator of PyTorch's ----------------------------------------------------


def test_a_kernel_of_inductor_is_a_stream_of_what_it_says_or_of_its_pointers(tmp_path):
    dims = [[4096, 14336]] * 3 + [[]]
    name = "triton_poi_fused_mul_silu_0"
    assert moved(tmp_path, name, dims, [BF16] * 3, kernel=name) == 3 * 4096 * 14336 * 2
    said = {"kernel_num_gb": 0.25}
    found = moved(tmp_path, name, dims, [BF16] * 3, kernel=name, said=said)
    assert found == pytest.approx(0.25e9)
    found = moved(tmp_path, "mine", [], [], kernel="triton_per_fused_sum_1", kernel_said=said)
    assert found == pytest.approx(0.25e9)


def exchange(ranks, op="allreduce", elements=32 * MIB):
    said = {"Collective name": op, "In msg nelems": elements, "Out msg nelems": elements,
            "dtype": "BFloat16", **({"Group size": ranks} if ranks else {})}  # fmt: skip
    return Ran("record_param_comms", [], [], [], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 420,
               said=said)  # fmt: skip


def test_an_exchange_is_predicted_as_the_collective(tmp_path):
    system = systems.load("dgx-h100")
    found = line(tmp_path, exchange(8), system=system)
    wanted = predict_collective(Collective("all-reduce", 64 * MIB, 8), system).one(0)
    assert found.predicted_us == pytest.approx(wanted.seconds * 1e6)
    assert (found.group.how, found.bytes) == (SHAPE, 64 * MIB)
    gathered = line(tmp_path, exchange(8, "_allgather_base"), system=system)
    assert gathered.group.row["op"] == "all-gather"


def test_an_exchange_without_its_devices_is_known_by_its_size_and_said(tmp_path):
    unknown, far = (line(tmp_path, exchange(ranks)) for ranks in (0, 64))
    assert not unknown.explained
    assert "not recorded" in unknown.reason
    assert unknown.group.row["bytes"] == 64 * MIB
    assert "--system" in far.reason
    assert line(tmp_path, exchange(64), system=systems.load("dgx-h100")).explained


@cases
def test_kernels_are_of_their_own_class(kernel, kind):
    assert kernelnames.named(kernel).kind == kind


# ---- A host's trace ------------------------------------------------------------------------------


def test_a_trace_of_the_host_alone_says_nothing_of_a_gpu(cli, tmp_path):
    ran = Ran("aten::mm", [[512, 512], [512, 512]], [BF16, BF16])
    operator_trace([ran], tmp_path / "cpu.json", kernels=False)
    refused(
        cli("profile", "cpu.json", "-d", "rtx4090"),
        "the host ran every operator",
        "ProfilerActivity.CUDA",
    )
    assert cli("profile", "cpu.json", "-d", "epyc-9654")[0] == 0


def test_a_range_on_the_host_alone_is_no_run_of_a_gpu(cli, tmp_path):
    label = "perfmodel|op=gemm|dtype=bf16|m=512|n=512|k=512"
    event = {"ph": "X", "cat": "user_annotation", "name": label, "ts": 1, "dur": 9}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    code, _, err = cli("counters", "import", "t.json", "-d", "h100-sxm")
    assert code == 2
    assert "the host ran every operator" in err
    assert cli("counters", "import", "t.json", "-d", "epyc-9654")[0] == 0
