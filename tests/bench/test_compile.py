"""Compiled kernels: listings read as typed, and small kernels compiled for every target."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from cases import cases

from perfmodel import usercache
from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled import binarycache, compiled, compilefacts
from perfmodel.proof.compiled.compiled import (
    CompileError,
    DoesNotFit,
    Request,
    compile_all,
    compile_kernel,
    first_fitting,
)
from perfmodel.proof.compiled.compiledeffect import binaries, bundled_for, effect, nearest
from perfmodel.proof.compiled.compilefacts import LaunchFacts
from perfmodel.proof.compiled.disassembly import DisassemblyError, Instruction, loops, parse
from perfmodel.proof.compiled.instructions import hot_loop, mix, product, unit_of
from perfmodel.proof.compiled.issueslots import issue_slots, operations
from perfmodel.proof.compiled.targets import TARGETS, occupancy_of, target, target_of

# A matmul loop as compilers lay it out from Hopper on: the wait is out of line, after the end.
SASS = """
\tcode for sm_90a
\t\tFunction : matmul
        /*0000*/                   LDC R1, c[0x0][0x28] ;            /* 0x00000a00ff017b82 */
                                                                     /* 0x000e700000000800 */
        /*0010*/              @!P0 BRA 0x0070 ;
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R2 ;
        /*0030*/              @!P1 BRA 0x0090 ;
        /*0040*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;
        /*0050*/                   LDGSTS.E.BYPASS.128 [R3], desc[UR8][R4.64] ;
        /*0060*/               @P2 BRA 0x0020 ;
        /*0070*/                   STG.E.128 desc[UR8][R4.64], R24 ;
        /*0080*/                   EXIT ;
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R2 ;
        /*00a0*/              @!P1 BRA 0x0090 ;
        /*00b0*/                   BRA 0x0040 ;
        /*00c0*/                   BRA 0x00c0;
        /*00d0*/                   NOP;
\t\tFunction : other
        /*0000*/                   EXIT ;
"""

GCN = """
\t.text
matmul:                                 ; @matmul
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
\ts_branch .LBB0_1
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
\tglobal_load_dwordx4 v[0:3], v[4:5], off
\ts_waitcnt vmcnt(0)
\tds_write_b128 v6, v[0:3]
\tv_mfma_f32_32x32x8_bf16 v[16:31], v[0:1], v[2:3], v[16:31]
\tv_exp_f32_e32 v7, v8
\tv_pk_mul_f32 v[8:9], v[10:11], v[12:13]
\tv_add_u32_e32 v4, 16, v4
\ts_cbranch_scc1 .LBB0_1
; %bb.2:
\ts_endpgm
\t.amdhsa_kernel matmul
\t\t.amdhsa_group_segment_fixed_size 0
"""


def test_sass_is_read_with_its_branches_and_without_what_pads_it():
    program = parse(SASS, nvidia=True)
    assert [item.stem for item in program][-1] == "BRA"
    assert len(program) == 12  # neither the closing self-branch nor another function
    assert program[1].target == 7
    assert program[1].guarded
    assert not program[1].ends
    assert program[8].ends


def test_a_loop_whose_wait_was_moved_out_of_line_is_one_loop():
    program = parse(SASS, nvidia=True)
    spin, whole = loops(program)
    assert spin == {9, 10}
    assert whole == {2, 3, 4, 5, 6, 9, 10, 11}
    assert hot_loop(program) == tuple(sorted(whole))  # the wait is no loop of its own
    counts = mix(program[i] for i in hot_loop(program))
    assert {unit: n for unit, n in counts.items() if n} == {"matrix": 1, "copy": 1, "control": 6}
    # One 64 x 128 x 16 product for each of the two warpgroups of 8 warps.
    assert operations(program, whole, 8) == 2 * 2 * 64 * 128 * 16


def test_gcn_is_read_with_its_labels():
    program = parse(GCN, nvidia=False)
    (loop,) = loops(program)
    assert loop == set(range(2, 10))
    units = [unit_of(program[i]) for i in sorted(loop)]
    said = "global control shared matrix special vector integer control"
    assert units == said.split()
    assert operations(program, loop, 8) == 8 * 2 * 32 * 32 * 8


@pytest.mark.parametrize("nvidia", [True, False])
def test_a_listing_of_another_format_is_an_error(nvidia):
    with pytest.raises(DisassemblyError, match="no instruction"):
        parse("error: not a binary", nvidia)


@cases
def test_instructions_fall_to_their_units(opcode, unit):
    assert unit_of(Instruction(opcode)) == unit


def test_matrix_instructions_say_what_they_multiply():
    def of(opcode: str, operands: str = "", *before: Instruction):
        return product([*before, Instruction(opcode, operands)], len(before))

    hmma = of("HMMA.16816.F32")
    assert (hmma.flops, hmma.dtype, hmma.scope) == (2 * 16 * 8 * 16, "fp16", "warp")
    assert of("HMMA.1688.F32.TF32").dtype == "tf32"
    assert of("QMMA.16832.F32.E4M3.E4M3").dtype == "fp8"
    assert of("v_mfma_f32_16x16x32_fp8_fp8").flops == 2 * 16 * 16 * 32
    assert of("v_mfma_f32_4x4x4_16b_f16").flops == 2 * 4 * 4 * 4 * 16
    # N = 256 in bits 17 to 22 in eighths, M = 128 from bit 24 in sixteenths, bf16 in bit 7.
    described = Instruction("UMOV", "UR21, 0x8410490")
    issued = of("UTCHMMA", "gdesc[UR30], gdesc[UR28], tmem[UR5], tmem[UR20], idesc[UR21], !UPT",
                described)  # fmt: skip
    assert (issued.flops, issued.dtype) == (2 * 128 * 256 * 16, "bf16")
    assert issued.scope == "block"
    assert of("UTCHMMA", "idesc[UR21]", Instruction("UIADD3", "UR21, UR3, UR4")) is None


def test_issue_slots_follow_the_units_of_the_device():
    h100 = load("h100-sxm")
    program = (Instruction("MUFU.EX2"), Instruction("FFMA"), Instruction("LDS.128"))
    cycles = issue_slots(h100, program, range(3), warps=4).cycles
    # 4 warps of 32 lanes: 16 exponentials and 128 multiply-adds a clock; 512 B at 128 B a clock.
    assert cycles["special"] == pytest.approx(8)
    assert cycles["fma"] == pytest.approx(1, rel=0.05)
    assert cycles["lsu"] == pytest.approx(16)
    assert cycles["issue"] == pytest.approx(3)
    unsaid = (Instruction("UTCHMMA", "gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11]"),)
    assert issue_slots(h100, unsaid, (0,), warps=4).limiter == "unknown"


def test_occupancy_is_the_least_of_its_limits():
    h100 = load("h100-sxm")
    # 168 registers: 5376 a warp, 3 warps in each quarter of 16384 registers, so one block of 8.
    assert occupancy_of(h100, 168, 0, 256).blocks == 1
    assert occupancy_of(h100, 32, 0, 256).warps == 64
    assert occupancy_of(h100, 32, 100 * 1024, 128).blocks == 2
    assert occupancy_of(h100, 32, 100 * 1024, 128).limit == "shared memory"
    assert occupancy_of(h100, 32, 228 * 1024, 128).blocks == 0
    b200 = load("b200")
    assert occupancy_of(b200, 32, 1024, 128, 256).blocks == 2
    assert occupancy_of(b200, 32, 1024, 128, 512).limit == "tensor memory"
    assert occupancy_of(b200, 32, 1024, 128, 512).blocks == 1
    # 128 vector registers leave 4 wavefronts on each of the 4 SIMDs.
    assert occupancy_of(load("mi300x"), 128, 0, 256).blocks == 4
    with pytest.raises(ProblemError, match="occupancy"):
        occupancy_of(load("epyc-9654"), 32, 0, 128)


def test_targets_are_found_by_name_and_by_device():
    assert target("SM90") is TARGETS["sm_90"]
    assert target_of(load("rtx3090")).name == "sm_80"
    assert target_of(load("mi300x")).name == "gfx942"
    with pytest.raises(UnknownName, match="did you mean sm_90"):
        target("sm_91")
    with pytest.raises(ProblemError, match="no compile target"):
        target_of(load("v100-sxm2"))
    for item in TARGETS.values():
        assert load(item.device).shared_max_per_block_bytes == item.shared_per_block


def test_the_cache_gives_back_what_it_was_given_and_nothing_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv(usercache.ENVIRONMENT, str(tmp_path))
    name = binarycache.key({"source": "a"})
    assert name != binarycache.key({"source": "b"})
    assert binarycache.read(name) is None
    binarycache.write(name, {"registers": 3})
    assert binarycache.read(name) == {"registers": 3}
    (path,) = binarycache.folder().iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], b"text", whole[:30] + b"\0" + whole[31:]):
        path.write_bytes(damaged)
        assert binarycache.read(name) is None
    path.write_bytes(whole)
    path.rename(path.with_name(f"{'0' * 64}.json.gz"))  # content that is not what its name says
    assert binarycache.read("0" * 64) is None
    monkeypatch.setenv(usercache.ENVIRONMENT, str(path / "below-a-file"))
    binarycache.write(name, {"registers": 3})  # nothing is kept, nothing is raised


def _rows(target):
    """Query rows of a tile that four warps share, none doing another's products."""
    return 64 if target.nvidia else 128  # 16 rows of an instruction, or 32


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three kernels in small tiles, compiled for every target into a cache of their own."""
    pytest.importorskip("triton")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(usercache.ENVIRONMENT, str(tmp_path_factory.mktemp("cache")))
        kernels = registry.kernels()
        tiles = replace(kernels["matmul"].configs[0], bm=64, bn=64, bk=32, warps=4, stages=3)
        tiled = kernels["attention-tiled"].configs[0]
        attention = Attention(1, 2, 1, 256, 256, 64, dtype="fp16", causal=True)
        chosen = [
            ("copy", *kernels["copy"].cases[0]),
            ("matmul", Matmul(256, 256, 256, 1, "bf16"), tiles),
        ]
        requests = [
            Request(kernels[name], problem, config, item)
            for name, problem, config in chosen
            for item in TARGETS.values()
        ] + [
            Request(
                kernels["attention-tiled"], attention,
                replace(tiled, br=_rows(item), bc=32, warps=4, stages=2), item,
            )
            for item in TARGETS.values()
        ]  # fmt: skip
        yield {(r.kernel.name, r.target.name): made for r, made in compile_all(requests)}


@pytest.mark.parametrize("name", TARGETS)
def test_small_kernels_compile_for_every_target(small, name):
    device = load(TARGETS[name].device)
    for kernel in ("copy", "matmul", "attention-tiled"):
        made = small[kernel, name]
        assert not isinstance(made, CompileError), made
        (launch,) = made.launches
        assert 0 < launch.registers <= 512
        assert launch.spill_bytes == 0
        assert launch.occupancy(device).blocks >= 1
        assert launch.instructions["global"] + launch.instructions["copy"] > 0
        assert launch.issue_slots(device).limiter != "none"


@pytest.mark.parametrize("name", TARGETS)
def test_the_loop_of_the_binary_does_one_tiles_work(small, name):
    # A pass of matmul's loop is one step of k, of attention's one tile of keys, both products.
    assert small["matmul", name].launches[0].loop_operations == 2 * 64 * 64 * 32
    rows = _rows(TARGETS[name])
    assert small["attention-tiled", name].launches[0].loop_operations == 2 * rows * 32 * (64 + 64)
    special = small["attention-tiled", name].launches[0].loop_instructions["special"]
    lanes = 4 * TARGETS[name].warp_size
    assert special * lanes >= rows * 32  # an exponential for every score at least


def test_what_was_compiled_is_not_compiled_again(small, monkeypatch):
    def never(jobs):
        assert not jobs
        return iter(())

    monkeypatch.setattr(compiled, "_run", never)
    made = small["matmul", "sm_90"]
    kernel = registry.kernel("matmul")
    assert compile_kernel(kernel, made.problem, made.config, made.target) == made


def test_a_config_that_cannot_fit_says_by_how_much(small):
    kernel = registry.kernel("matmul")
    config = replace(kernel.configs[0], bm=128, bn=256, bk=64, stages=3)
    problem = small["matmul", "gfx942"].problem
    with pytest.raises(DoesNotFit, match=r"32\.0 KiB more than the 64 KiB") as error:
        compile_kernel(kernel, problem, config, target("gfx942"))
    assert "\n" not in str(error.value)
    held = replace(small["matmul", "sm_100"].launches[0], tensor_memory_columns=640)
    assert "640 columns of tensor memory a block, 128 more" in compiled._overflow(held)
    configs = (config, small["matmul", "gfx942"].config)
    menu = replace(kernel, configs=configs, menu_of=None)
    (made,) = first_fitting(menu, problem, [target("gfx942")])
    assert made.config == menu.configs[1]


def test_what_a_target_cannot_do_is_one_line_and_stops_nothing(small):
    kernel, made = registry.kernel("matmul"), small["matmul", "sm_80"]
    refused = Request(kernel, Matmul(256, 256, 256, 1, "fp8"), made.config, made.target)
    fine = Request(kernel, made.problem, made.config, made.target)
    (_, error), (_, found) = compile_all([refused, fine])
    assert isinstance(error, CompileError)
    assert "does not compile" in str(error)
    assert "\n" not in str(error)
    assert found == made


def test_a_compiler_that_dies_takes_only_its_own_job_with_it(monkeypatch):
    def worker(jobs):
        yield jobs[0]["key"], {"registers": 1}
        yield None, {"error": "the compiler stopped (SIGABRT): LLVM ERROR"}

    monkeypatch.setattr(compiled, "_worker", worker)
    answers = dict(compiled._run([{"key": name} for name in "abc"]))
    assert answers["a"] == {"registers": 1}
    assert "SIGABRT" in answers["b"]["error"]
    assert answers["c"] == {"registers": 1}


def test_without_triton_the_extra_is_named(monkeypatch):
    def missing(name):
        raise compiled.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(compiled.metadata, "version", missing)
    with pytest.raises(compiled.KernelError, match=r"perfmodel\[gpu\]"):
        compiled._triton_version()


def test_predictions_take_the_compiled_footprint(small):
    made = small["matmul", "sm_90"]
    (launch,) = made.launches
    binary = binaries(made.facts())["matmul"]
    assert binary.registers >= launch.registers
    assert binary.shared_bytes == launch.shared_bytes
    kernel, h100 = registry.kernel("matmul"), load("h100-sxm")
    found = effect(made.problem, h100, kernel, made.config, facts=made.facts())
    (one,) = found.kernels
    assert found.target == "sm_90"
    assert found.ratio == pytest.approx(found.seconds / found.assumed_seconds)
    assert one.blocks == launch.occupancy(h100).blocks
    greedy = replace(made, launches=(replace(launch, dynamic_shared_bytes=227 * 1024),))
    slower = effect(made.problem, h100, kernel, made.config, facts=greedy.facts())
    assert slower.kernels[0].blocks == 1
    assert slower.seconds >= found.seconds
    assert math.isfinite(slower.ratio)


@pytest.mark.parametrize("pipe", ["alu", "fma", "issue", "special", "lsu"])
def test_busier_pipes_never_make_a_prediction_faster(small, pipe):
    made = small["attention-tiled", "sm_90"]
    kernel, h100 = registry.kernel("attention-tiled"), load("h100-sxm")
    problem = replace(made.problem, batch=64, seq_q=1024, seq_kv=1024)
    (fact,) = made.facts()
    seconds = []
    for factor in (1.0, 2.0, 100.0):
        busier = replace(fact, cycles={**fact.cycles, pipe: fact.cycles[pipe] * factor})
        seconds.append(effect(problem, h100, kernel, made.config, facts=[busier]).seconds)
    assert seconds == sorted(seconds)
    assert seconds[-1] > 2 * seconds[0]


def test_spills_and_instructions_are_in_the_compiled_prediction():
    """Every spilled register is stored and loaded by instructions that the pipes count."""
    kernel, h100 = registry.kernel("matmul"), load("h100-sxm")
    problem = Matmul(4096, 4096, 4096, dtype="fp16")
    config = replace(kernel.configs[0], bm=128, bn=128, bk=64)
    lean = LaunchFacts(
        "k", "matmul", "matmul", "sm_90", "3", "", "", "fits", registers=168,
        shared_bytes=98304, threads=256, looped=True, flops_per_pass=2.0 * 128 * 128 * 64,
        cycles={"matrix": 512.0, "issue": 300.0, "lsu": 100.0},
    )  # fmt: skip
    spilling = replace(
        lean, spill_bytes=512, cycles={**lean.cycles, "issue": 1300.0, "lsu": 1600.0}
    )
    one, other = (effect(problem, h100, kernel, config, facts=[f]) for f in (lean, spilling))
    tiles, passes = (4096 // config.bm) * (4096 // config.bn), 4096 // 64
    most = -(-tiles // h100.units) * passes  # of the busiest unit
    clock = h100.boost_hz
    assert one.seconds < most * 1600.0 / clock <= other.seconds
    assert other.kernels[0].spill_bytes == 512
    assert one.assumed_seconds == other.assumed_seconds


def test_specialised_warps_spill_only_what_they_spill_in_loops(small):
    made = small["matmul", "sm_90"]
    spilling = replace(made.launches[0], spill_bytes=8)
    specialised = replace(spilling, threads=spilling.threads + 32)
    facts = [replace(made, launches=(each,)).facts()[0] for each in (spilling, specialised)]
    assert [fact.spill_bytes for fact in facts] == [8, 0]
    assert [fact.usable for fact in facts] == [False, True]


def test_facts_survive_the_file(small, tmp_path):
    rows = [fact for made in small.values() for fact in made.facts()]
    path = tmp_path / "facts.csv"
    path.write_text(compilefacts.dumped(rows))
    back = compilefacts.read(path)
    assert {row.key for row in back} == {row.key for row in rows}
    mine = {row.key: row for row in rows}
    for row in back:
        assert replace(row, cycles={}) == replace(mine[row.key], cycles={})
        assert row.cycles == pytest.approx(dict(mine[row.key].cycles), rel=1e-5)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(PerfmodelError, match="not a table of compile facts"):
        compilefacts.read(path)


def test_facts_are_found_by_what_is_compiled(small):
    made = small["matmul", "sm_90"]
    kernel = registry.kernel("matmul")
    facts = compilefacts.Facts(made.facts())
    assert facts.of(kernel, made.problem, made.config, made.target) == made.facts()
    larger = replace(made.problem, m=made.problem.m * 16)  # another size, the same binary
    assert facts.of(kernel, larger, made.config, made.target) == made.facts()
    ragged = replace(made.problem, n=made.problem.n + 1)  # rows that are not aligned
    assert facts.of(kernel, ragged, made.config, made.target) is None
    assert facts.of(kernel, made.problem, made.config, target("sm_100")) is None


def test_a_predictions_tile_finds_its_kernel_and_nearest_config():
    pytest.importorskip("triton")
    name, fields = bundled_for(Matmul(256, 256, 256), {"m": 256.0, "n": 128.0, "slices": 1.0})
    assert name == "matmul"
    config = nearest(
        registry.kernel(name).configs, {"m": 256.0, "n": 128.0, "slices": 1.0}, fields
    )[0]
    assert (config.bm, config.bn) == (256, 128)
    attention = Attention(1, 8, 2, 1, 4096, 128)
    tile = {"rows": 64.0, "keys": 64.0, "splits": 4.0}
    assert bundled_for(attention, tile)[0] == "attention-decode"
    assert bundled_for(replace(attention, seq_q=64, direction="bwd"), {})[0] == "attention-backward"
    with pytest.raises(ProblemError, match="no bundled kernel"):
        bundled_for(Rowwise("quantise", 8, 8), {})


def test_a_loop_behind_an_indirect_jump_is_found():
    # Specialised warps are sent to their part by a jump through a register.
    program = parse(
        "\n".join(
            f"        /*{at:04x}*/    {text} ;"
            for at, text in (
                (0x00, "BRX R4 -0x150"),
                (0x10, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2"),
                (0x20, "@!P0 BRA 0x10"),
                (0x30, "HMMA.16816.F32 R4, R8, R12, R4"),
                (0x40, "@P1 BRA 0x10"),
                (0x50, "EXIT"),
            )
        ),
        nvidia=True,
    )
    assert hot_loop(program) == (1, 2, 3, 4)
