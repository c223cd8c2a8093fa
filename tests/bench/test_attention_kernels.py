"""The forward attention kernels: right results and exact bytes on any shape, and menus that
compile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
import triton
import triton.language as tl
from perfmodel_kernels.attention_decode import DecodeConfig
from perfmodel_kernels.attention_gluon import GluonConfig
from perfmodel_kernels.attention_gluon_blackwell import BlackwellConfig
from perfmodel_kernels.attention_latent import LatentConfig
from perfmodel_kernels.attention_menus import AttentionConfig
from perfmodel_kernels.attention_tile import rounded
from perfmodel_kernels.common import ceil_div

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled.compiled import CompiledLaunch, Request, compile_all
from perfmodel.proof.compiled.disassembly import loops, parse
from perfmodel.proof.compiled.instructions import hot_loop
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import KernelError
from perfmodel.proof.replay.recorder import Recorder, recording
from perfmodel.proof.replay.replay import TOLERANCES, replay

GLUON = {"attention-gluon": "sm_90", "attention-gluon-blackwell": "sm_100"}
FORWARD = ("attention-tiled", "attention-decode", *GLUON)
UNITS = {name: load(target.device).units for name, target in TARGETS.items()}


def holds(name, problem, config):
    """Replayed: every byte as counted, and the result right."""
    found = replay(name, problem, config)
    assert found.equal, [row for row in found.tensors if not row.equal]
    assert not found.misread
    assert found.largest_error <= TOLERANCES[problem.dtype]


# ---- Any shape -----------------------------------------------------------------------------------

lengths = st.one_of(st.integers(1, 20), st.integers(1, 150))


@st.composite
def problems(draw, queries=lengths):
    """Ragged lengths, groups of 1 to 8 heads, masks of every kind, head sizes up to 128."""
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 8))
    window = draw(st.one_of(st.none(), st.integers(1, 60)))
    return Attention(
        1,
        kv_heads * group,
        kv_heads,
        draw(queries),
        draw(lengths),
        draw(st.sampled_from([16, 24, 40, 64, 128])),
        causal=draw(st.booleans()),
        window=window,
        dtype=draw(st.sampled_from(["fp32", "fp16"])),
    )


@given(problems(), st.sampled_from([16, 24, 32, 64]), st.sampled_from([16, 32, 64]), st.data())
def test_the_tiled_kernel_holds_on_any_shape(problem, br, bc, data):
    group = problem.heads_q // problem.heads_kv
    config = AttentionConfig(
        br,
        bc,
        pack=data.draw(st.integers(1, group), label="pack"),
        descriptors=data.draw(st.booleans(), label="descriptors"),
    )
    holds("attention-tiled", problem, config)


@given(problems(st.integers(1, 6)), st.sampled_from([16, 32]), st.integers(1, 4), st.data())
def test_the_decode_kernel_holds_on_any_shape(problem, bc, steps, data):
    group = problem.heads_q // problem.heads_kv
    config = DecodeConfig(
        steps * bc,
        data.draw(st.sampled_from([8, 16]), label="br"),
        bc,
        data.draw(st.integers(1, group), label="pack"),
        descriptors=data.draw(st.booleans(), label="descriptors"),
    )
    holds("attention-decode", problem, config)


def test_more_slices_than_a_block_combines_at_once():
    # 68 slices; 8192 elements of 128 columns are 64 of them.
    problem = Attention(1, 2, 1, 1, 1083, 128, dtype="fp32")
    config = DecodeConfig(16, 16, 16, 2)
    launch = registry.kernel("attention-decode").launches(problem, config)[1]
    assert launch.constexprs["COUNT"] < ceil_div(1083, 16)
    holds("attention-decode", problem, config)


@pytest.mark.parametrize("name", ["attention-tiled", "attention-decode"])
def test_keys_of_eight_bits_are_converted_to_the_queries_type(name):
    problem = Attention(1, 4, 2, 20, 90, 32, dtype="fp16", kv_dtype="fp8", causal=True)
    small = {"br": 16, "bc": 32} | ({"split": 32} if name.endswith("decode") else {})
    config = replace(registry.kernel(name).configs[0], **small)
    holds(name, problem, config)


def test_the_longest_blocks_of_a_causal_head_start_first():
    kernel = registry.kernel("attention-tiled")
    problem = Attention(1, 2, 2, 100, 100, 16, causal=True, dtype="fp32")
    config = AttentionConfig(16, 16)
    inputs = kernel.make_inputs(problem)
    tensors = {**inputs.tensors, **kernel.allocate(problem, config)}
    spans = {
        name: (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
        for name, tensor in tensors.items()
    }
    keys_read = [0] * 14
    (launch,) = kernel.launches(problem, config)

    def note(chunk):
        if chunk.tensor == "K":
            keys_read[chunk.block] += chunk.offsets.size // problem.head_dim

    with recording(Recorder(spans, note)):
        kernel.launch(launch, tensors)
    assert keys_read == 2 * [100, 96, 80, 64, 48, 32, 16]


@triton.jit
def _round(X, Y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(Y + at, rounded(tl.load(X + at), tl.bfloat16, True).to(tl.float32))


def test_rounding_by_bits_is_the_nearest_bf16():
    x = torch.rand(4096, generator=torch.Generator().manual_seed(0)) ** 8
    found = torch.empty_like(x)
    _round[(1,)](x, found, 4096)
    assert torch.equal(found, x.to(torch.bfloat16).float())  # random values are no ties


# ---- What they cannot do -------------------------------------------------------------------------

PLAIN = Attention(1, 2, 2, 64, 64, 64, dtype="fp16")


@pytest.mark.parametrize("name", FORWARD)
@cases
def test_what_no_forward_kernel_computes_is_refused(name, change, said):
    kernel = registry.kernel(name)
    with pytest.raises(ProblemError, match=said) as caught:
        kernel.launches(replace(PLAIN, **change), kernel.configs[0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", GLUON)
@cases
def test_what_a_gluon_kernel_cannot_do_is_refused(name, change, said):
    kernel = registry.kernel(name)
    problem = replace(PLAIN, **change)
    with pytest.raises(ProblemError, match=said):
        kernel.menu(problem, GLUON[name], 132)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AttentionConfig(64, 48),
        lambda: AttentionConfig(64, 8),
        lambda: AttentionConfig(64, 64, pack=0),
        lambda: DecodeConfig(96, 16, 48),
        lambda: DecodeConfig(100, 16, 64),
        lambda: GluonConfig(groups=4),
        lambda: GluonConfig(stages=0),
        lambda: BlackwellConfig(ahead=3),
        lambda: BlackwellConfig(64, 3, ahead=2),
        lambda: BlackwellConfig(slack=16),
        lambda: BlackwellConfig(bc=96),
    ],
)
def test_a_tile_that_cannot_be_is_refused(wrong):
    with pytest.raises(ProblemError):
        wrong()


@pytest.mark.parametrize("name", GLUON)
def test_a_kernel_without_an_interpreter_says_so(name):
    kernel = registry.kernel(name)
    problem, config = kernel.cases[0]
    with pytest.raises(KernelError, match="on a device only"):
        kernel.run(kernel.make_inputs(replace(problem, seq_q=8, seq_kv=8)), config)
    with pytest.raises(ProblemError, match=f"written for {GLUON[name]}, not for sm_80"):
        kernel.menu(problem, "sm_80", 108)
    (launch,) = kernel.launches(problem, config)
    expected = "tensordesc<bf16[1, 128, 128],NVMMASharedLayout(128, 16, 3)>"
    assert launch.signature["K"] == expected


# ---- Menus ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("target", TARGETS)
def test_every_form_has_a_short_menu_on_every_target(name, target):
    kernel = registry.kernel(name)
    if not kernel.takes(target):
        return
    for form in kernel.forms:
        menu = kernel.menu(form, target, UNITS[target])
        assert len(set(menu)) == len(menu)
        assert len(menu) <= 6
        if name not in GLUON:
            assert not all(config.descriptors for config in menu)
            ragged = kernel.menu(replace(form, head_dim=form.head_dim - 1), target, UNITS[target])
            assert ragged
            assert not any(config.descriptors for config in ragged)
        for config in menu:
            assert target == "sm_100" or not getattr(config, "specialise", False)
            assert target == "gfx942" or not getattr(config, "by_bits", False)
            copied = getattr(config, "descriptors", name in GLUON)
            assert target in ("sm_90", "sm_100", "sm_120") or not copied


@pytest.mark.parametrize("target", TARGETS)
def test_menus_serve_every_type_that_a_target_multiplies(target):
    for dtype in ("fp32", "fp16", "bf16", "fp8"):
        form = Attention(1, 8, 8, 1024, 1024, 128, dtype=dtype)
        if (target, dtype) == ("sm_80", "fp8"):
            with pytest.raises(ProblemError, match="no config for sm_80"):
                registry.kernel("attention-tiled").menu(form, target, UNITS[target])
        else:
            assert registry.kernel("attention-tiled").menu(form, target, UNITS[target])


@given(st.integers(2, 40), st.integers(1, 300), st.sampled_from(sorted(TARGETS)))
def test_few_queries_of_a_group_share_a_tile(group, seq_q, target):
    problem = Attention(1, group, 1, seq_q, 4096, 128)
    for config in registry.kernel("attention-tiled").menu(problem, target, UNITS[target]):
        assert config.pack <= group
        assert config.rows * config.pack <= config.tile
        if 2 * seq_q <= config.br:  # heads are added as long as all their queries fit
            most = min(group, config.br // (1 << (seq_q - 1).bit_length()))
            assert config.pack >= min(most, 1) or config.rows >= seq_q


@given(st.integers(1, 64), st.integers(1, 16), st.integers(1, 8), st.integers(1, 200_000))
def test_slices_fill_the_units_and_no_more_than_four_times(batch, kv_heads, group, keys):
    problem = Attention(batch, kv_heads * group, kv_heads, 1, keys, 128)
    kernel = registry.kernel("attention-decode")
    for target, units in UNITS.items():
        for config in kernel.menu(problem, target, units):
            blocks = kernel.launches(problem, config)[0].blocks
            slices = ceil_div(keys, config.split)
            tiles = blocks // slices
            resident = 4
            assert slices == 1 or blocks <= 4 * resident * units
            # One slice more a head would be beyond a wave, or slices are as short as they may be.
            assert 2 * (blocks + tiles) >= units or config.split <= 4 * config.bc


# ---- Binaries ------------------------------------------------------------------------------------

# That no entry of a menu spills is in test_compile_facts.py, for all kernels.


MASKED = Attention(2, 32, 8, 4096, 4096, 128, causal=True)
NARROW = replace(MASKED, heads_q=16, heads_kv=16, head_dim=64)


@pytest.fixture(scope="module")
def compiled() -> list[tuple[Any, CompiledLaunch]]:
    """Configs and binaries of the tiled kernel with a mask and without, and of the Gluon ones.

    Loops are cut in the source, alike for every target.
    """
    tiled = registry.kernel("attention-tiled")
    config = tiled.menu(MASKED, "sm_90", UNITS["sm_90"])[0]
    requests = [
        Request(tiled, replace(MASKED, causal=causal), config, TARGETS["sm_90"])
        for causal in (True, False)
    ]
    for name, target in GLUON.items():
        kernel = registry.kernel(name)
        config = kernel.menu(NARROW, target, UNITS[target])[0]
        requests.append(Request(kernel, NARROW, config, TARGETS[target]))
    return [(request.config, made.launches[0]) for request, made in compile_all(requests)]


def test_tiles_that_every_row_sees_pay_for_no_mask(compiled):
    causal, full = (launch.loop_instructions for _, launch in compiled[:2])
    # A mask takes a compare and a selection a score, and there is an exponential a score.
    for unit in ("integer", "vector"):
        assert abs(causal[unit] - full[unit]) < causal["special"] / 4


def test_the_gluon_loop_runs_its_softmax_beside_a_product(compiled):
    config, launch = compiled[2]
    body = [launch.program[i] for i in launch.loop]
    # One product of 64 rows by bc keys and one by head_dim columns.
    assert launch.loop_operations == 2 * 2 * 64 * config.bc * NARROW.head_dim
    waits = [i for i, item in enumerate(body) if item.opcode.startswith("WARPGROUP.DEPBAR")]
    scores, product = waits
    assert [body[i].operands.split(", ")[1] for i in waits] == ["0x1", "0x0"]
    assert all(i < scores for i, item in enumerate(body) if item.stem == "HGMMA")
    # Every score's exponential stands between the waits: the second product is under way.
    exponentials = [i for i, item in enumerate(body) if item.opcode == "MUFU.EX2"]
    assert sum(scores < i < product for i in exponentials) >= 64 * config.bc // 128
    stems = {item.stem for item in launch.program}
    assert {"UTMALDG", "UTMASTG", "USETMAXREG"} <= stems
    assert launch.threads == 128 * (config.groups + 1)


def test_blackwell_warps_leave_each_other_the_work_they_are_for(compiled):
    config, launch = compiled[3]
    # The products' loop: two of 128 rows by bc keys and two by head_dim columns, no scores.
    assert launch.loop_operations == 2 * 2 * 2 * 128 * config.bc * NARROW.head_dim
    stems = [launch.program[i].stem for i in launch.loop]
    assert not {"MUFU", "LDTM", "STTM", "UTMALDG"} & set(stems)
    bodies = [[launch.program[i] for i in sorted(body)] for body in loops(launch.program)]
    # A softmax loop takes one exponential a score and one a row, all but that of the row
    # after saying how much the row's maximum has grown.
    softmax = [body for body in bodies if any(item.stem == "MUFU" for item in body)]
    assert len(softmax) == 4  # masked or not, of two groups
    for body in softmax:
        powers = [i for i, item in enumerate(body) if item.opcode == "MUFU.EX2"]
        grown = next(i for i, item in enumerate(body) if "ARRIVE" in item.opcode)
        assert len(powers) == config.bc + 1
        assert sum(i < grown for i in powers) == 1
    assert {"UTMALDG", "UTMASTG", "USETMAXREG"} <= {item.stem for item in launch.program}
    assert launch.threads == 512
    assert launch.tensor_memory_columns == 512


LOOPS = """
	Function : two
        /*0000*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;
        /*0010*/                   ISETP.GT.AND P3, PT, R197, R229, PT ;
        /*0020*/                   FSEL R27, R27, -INF , !P3 ;
        /*0030*/                   MUFU.EX2 R27, R27 ;
        /*0040*/               @P1 BRA 0x0000 ;
        /*0050*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;
        /*0060*/                   MUFU.EX2 R27, R27 ;
        /*0070*/               @P2 BRA 0x0050 ;
        /*0080*/                   EXIT ;
"""


def test_of_two_loops_with_the_same_products_the_one_without_masks_is_meant():
    assert hot_loop(parse(LOOPS, nvidia=True)) == (5, 6, 7)


@settings(max_examples=6)
@given(
    st.integers(1, 2), st.integers(1, 9), st.integers(1, 90), st.sampled_from([16, 32]),
    st.sampled_from([1, 2, 5]), st.integers(1, 6),
)  # fmt: skip
def test_latent_keys_are_read_once_for_scores_and_values(batch, heads, keys, latent, steps, pack):
    """The bytes of V are none, and those of K what they are where V has memory of its own."""
    problem = Attention(
        batch, heads, 1, 1, keys, latent + 16, latent, causal=True, dtype="fp32", keys_only=True
    )
    found = replay("attention-latent", problem, LatentConfig(16 * steps, 16, pack))
    assert found.equal, [row for row in found.tensors if not row.equal]
    assert not found.misread
    assert found.largest_error < TOLERANCES["fp32"]
    read = {row.tensor: row.asked.read_bytes for row in found.tensors if row.kernel == "split-kv"}
    assert "V" not in read
    assert read["K"] == 4 * batch * ceil_div(heads, pack) * keys * (latent + 16)


@cases
def test_latent_problems_that_cannot_be_are_one_line(fields, told):
    kernel = registry.kernel("attention-latent")
    problem, config = kernel.cases[0]
    with pytest.raises(ProblemError, match=told) as caught:
        kernel.launches(replace(problem, **fields), config)
    assert "\n" not in str(caught.value)
