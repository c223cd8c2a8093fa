"""Instructions by the unit that executes them, and the shape of matrix instructions.

Units: `matrix`, `special` (exponentials, reciprocals and the conversions that share their unit),
`vector` (floating point), `integer` (logic, comparisons and addresses too), `global` (loads,
stores and atomics), `shared` (with shuffles, which use its crossbar), `copy` (asynchronous copies
and tensor memory), `spill` (a thread's own memory), `control`, `other` (moves, constants).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfmodel.proof.compiled.disassembly import Instruction, loops

UNITS = (
    "matrix",
    "special",
    "vector",
    "integer",
    "global",
    "shared",
    "copy",
    "spill",
    "control",
    "other",
)
_WORK = ("matrix", "special", "vector", "global", "shared", "copy")

# Stems of SASS opcodes by unit (CUDA Binary Utilities, instruction set reference).
_SASS_STEMS = {
    "special": "MUFU I2F F2I F2F FRND UI2F UF2I I2I",
    "global": "LDG STG LD ST ATOM ATOMG RED REDG",
    "shared": "LDS STS LDSM STSM ATOMS SHFL MOVM",
    "copy": "LDGSTS UTMALDG UTMASTG UTMAREDG UTMAPF UBLKCP UBLKRED UBLKPF LDTM STTM UTCCP UTCSHIFT",
    "spill": "LDL STL",
    "control": "BRA BRX JMP JMX EXIT RET CALL KILL BAR BSSY BSYNC BREAK BMOV WARPSYNC DEPBAR"
    " LDGDEPBAR LDTDEPBAR WARPGROUP WARPGROUPSET MEMBAR FENCE SYNCS UTCBAR ARRIVES NANOSLEEP YIELD"
    " ERRBAR CGAERRBAR CCTL UTMACCTL UTMACMDFLUSH BPT USETMAXREG USETSHMSZ ACQBULK PREEXIT NOP"
    " UTCATOMSWS UVIRTCOUNT ENDCOLLECTIVE",
    "other": "MOV UMOV CS2R S2R S2UR CS2UR R2UR P2R R2P UP2UR LDC ULDC LDCU VOTE VOTEU ELECT",
}
_SASS_UNIT = {stem: unit for unit, stems in _SASS_STEMS.items() for stem in stems.split()}
_SASS_MATRIX = re.compile(r"([HIDQBO]|UTC(MX)?[HIQO])G?MMA$")
_SASS_VECTOR = re.compile(r"[FHD](ADD|MUL|FMA|SEL|MNMX|SETP?|CHK|SWZADD)|F2FP|I2FP|HSETP|DSETP")

# AMDGCN opcodes by unit, the first that fits (AMD Instinct MI300 ISA guide, chapters 5 to 11).
_GCN_UNITS = tuple(
    (unit, re.compile(pattern))
    for unit, pattern in (
        ("matrix", r"v_s?mfma_"),
        ("special", r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_"),
        ("copy", r"(global|buffer)_load_lds_"),
        ("shared", r"ds_"),
        ("spill", r"scratch_"),
        ("global", r"(global|flat|buffer)_"),
        ("control", r"s_(barrier|waitcnt|c?branch|endpgm|nop|sleep|setprio|setpc|sched|delay)"),
        ("other", r"v_(mov|accvgpr|readlane|readfirstlane|writelane|swap)_|s_(c?mov|load|buffer)"),
        ("vector", r"v_(pk_)?(add|sub|subrev|mul|fma|fmac|mac|mad|max3?|min3?|med3|dot2?|ldexp"
                   r"|cmpx?_[a-z]+|div_[a-z]+|frexp\w*|trunc|floor|ceil|rndne)_(legacy_)?b?f\d\d"),
        ("vector", r"v_(pk_)?cvt_"),
        ("integer", r"[vs]_"),
    )
)  # fmt: skip


def unit_of(instruction: Instruction) -> str:
    """The unit that executes an instruction, of NVIDIA or AMD."""
    opcode, stem = instruction.opcode, instruction.stem
    if opcode[:1].islower():
        return next((unit for unit, pattern in _GCN_UNITS if pattern.match(opcode)), "other")
    if opcode.startswith(("IMAD.MOV", "HFMA2.MMA")):
        return "other"
    if stem in _SASS_UNIT:
        return _SASS_UNIT[stem]
    if _SASS_MATRIX.match(stem):
        return "matrix"
    return "vector" if _SASS_VECTOR.match(stem) else "integer"


def mix(program: Iterable[Instruction]) -> dict[str, int]:
    """Number of instructions by unit."""
    counts = Counter(unit_of(item) for item in program)
    return {unit: counts[unit] for unit in UNITS}


def hot_loop(program: Sequence[Instruction]) -> tuple[int, ...]:
    """Indexes of the innermost loop that does the most matrix work, else the most work.

    Of loops with equal matrix work the shortest is taken: kernels treat the few masked tiles at an
    edge in a separate, longer loop. A loop that only waits (for a barrier) does not count. With
    specialised warps the result is the loop of the warps that multiply. Empty where there is no
    loop.
    """
    units = [unit_of(item) for item in program]
    bodies = loops(program)
    candidates = [body for body in bodies if any(units[i] == "matrix" for i in body)]
    candidates = candidates or [body for body in bodies if any(units[i] in _WORK for i in body)]
    inner = [body for body in candidates if not any(b < body for b in candidates)]

    def work(body: frozenset[int]) -> tuple[int, ...]:
        counts = Counter(units[i] for i in body)
        if counts["matrix"]:
            return counts["matrix"], -len(body)
        busy = sum(counts[unit] for unit in _WORK)
        return 0, counts["special"], busy, len(body)

    if not inner:
        return ()
    hottest: frozenset[int] = max(inner, key=work)
    return tuple(sorted(hottest))


@dataclass(frozen=True, slots=True)
class Product:
    """The work of one matrix instruction."""

    flops: int
    """Operations; a multiply-add is two."""
    dtype: str
    """Type of its operands."""
    scope: str
    """Who issues it: each "warp", each "warpgroup" (four warps), or the "block" once."""


_SHAPES = {
    "16816": (16, 8, 16),
    "1688": (16, 8, 8),
    "1684": (16, 8, 4),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "884": (8, 8, 4),
}
_GCN_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)(?:_(\d+)b)?")
_TYPES = {"Q": "fp8", "I": "int8", "D": "fp64", "O": "fp4"}


def product(program: Sequence[Instruction], at: int) -> Product | None:
    """The work of the matrix instruction at index `at`; None where the listing does not show its
    shape."""
    item = program[at]
    if item.opcode[:1].islower():
        return _mfma(item)
    if item.stem.startswith("UTC"):
        return _tensor_memory(program, at)
    parts = item.opcode.split(".")
    dtype = _TYPES.get(item.stem[0]) or _half(parts)
    shape = next((part for part in parts[1:] if part in _SHAPES or "x" in part), "")
    if "x" in shape:
        m, n, k = (int(size) for size in shape.split("x"))
        return Product(2 * m * n * k, dtype, "warpgroup")
    if shape in _SHAPES:
        m, n, k = _SHAPES[shape]
        return Product(2 * m * n * k, dtype, "warp")
    return None


def _half(parts: Sequence[str]) -> str:
    """The operand type of a half-precision family, from its modifiers."""
    return next((kind.lower() for kind in ("TF32", "BF16") if kind in parts), "fp16")


def _mfma(item: Instruction) -> Product | None:
    shape = _GCN_SHAPE.search(item.opcode)
    if shape is None:
        return None
    m, n, k, blocks = (int(size or 1) for size in shape.groups())
    rest = item.opcode[shape.end() :]
    names = {"f16": "fp16", "xf32": "tf32", "f32": "fp32", "f64": "fp64", "i8": "int8"}
    dtype = "fp8" if re.search(r"fp8|bf8", rest) else "bf16" if "bf16" in rest else None
    dtype = dtype or next((names[part] for part in rest.split("_") if part in names), None)
    return Product(2 * m * n * k * blocks, dtype or "fp16", "warp")


def _tensor_memory(program: Sequence[Instruction], index: int) -> Product | None:
    """tcgen05.mma: its shape is in a descriptor that a UMOV sets up (PTX ISA, instruction
    descriptor: N/8 in bits 17 to 22, M/16 in bits 24 to 28, the operand type in bits 7 to 9).
    """
    item = program[index]
    register = re.search(r"idesc\[(UR\d+)\]", item.operands)
    if register is None:
        return None
    value = _constant(program[:index], register[1])
    if value is None:
        return None
    kind = {"H": "bf16", "Q": "fp8", "I": "int8", "O": "fp4"}[item.stem[3:].replace("MX", "")[0]]
    k = {"bf16": 16, "fp8": 32, "int8": 32, "fp4": 64}[kind]
    if kind == "bf16" and value >> 7 & 7 == 2:
        kind, k = "tf32", 8
    elif kind == "bf16" and value >> 7 & 7 == 0:
        kind = "fp16"
    n, m = (value >> 17 & 63) * 8, (value >> 24 & 31) * 16
    return Product(2 * m * n * k, kind, "block")


def _constant(program: Sequence[Instruction], register: str) -> int | None:
    """The constant last moved into a uniform register; None where it was computed."""
    for item in reversed(program):
        if item.operands.startswith(f"{register},"):
            value = item.operands.split(",")[1].strip()
            return int(value, 16) if item.stem == "UMOV" and value.startswith("0x") else None
    return None
