"""Disassembly read as instructions, control flow and loops: SASS (NVIDIA) and AMDGCN (AMD).

Loops are natural loops of the control-flow graph: a branch back to a block that dominates it. This
also finds loops whose waits the compiler moved out of line, as it does from Hopper on; there the
address range of the backward branch would cover half the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfmodel.errors import PerfmodelError

_SASS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
_ADDRESS = re.compile(r"(?:0x([0-9a-f]+)|`\(\.?\w+\))$")
_LABEL = re.compile(r"([.\w$]+):")
_GCN = re.compile(r"\t([a-z]\w+)(?:\s+(.*))?")
_GCN_FAMILIES = ("s_", "v_", "ds_", "global_", "buffer_", "flat_", "scratch_")
_ENDS = ("EXIT", "RET", "BRX", "JMX", "KILL", "s_endpgm", "s_setpc_b64")


class DisassemblyError(PerfmodelError):
    """A listing in which no instruction was found."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction."""

    opcode: str
    """Its opcode with modifiers."""
    operands: str = ""
    """Its operands as text."""
    guarded: bool = False
    """Whether it has a predicate and may not execute."""
    target: int | None = None
    """Index of the instruction that a branch goes to."""

    @property
    def stem(self) -> str:
        """The opcode without its modifiers: HMMA of HMMA.16816.F32."""
        return self.opcode.split(".")[0]

    @property
    def ends(self) -> bool:
        """Whether control never continues with the next instruction."""
        if self.guarded:
            return False
        return self.stem in _ENDS or (self.target is not None and self.stem != "CALL")


def parse(text: str, nvidia: bool) -> tuple[Instruction, ...]:
    """The instructions of the first function of a listing.

    `text` is what `cuobjdump -sass` prints, or AMDGCN assembly. Raises `DisassemblyError` where it
    holds none.
    """
    program = _sass(text) if nvidia else _gcn(text)
    if not program:
        raise DisassemblyError("the disassembly holds no instruction; is it of another format?")
    return program


def _sass(text: str) -> tuple[Instruction, ...]:
    places: dict[int, int] = {}
    rows: list[tuple[Instruction, int | None]] = []
    for line in text.splitlines():
        match = _SASS.match(line)
        if match is None:
            continue
        offset = int(match[1], 16)
        if offset in places:  # a second function starts over
            break
        places[offset] = len(rows)
        rows.append(_branch(match[2], match[3], match[4]))
    while rows and (rows[-1][0].stem == "NOP" or _halts(rows, places)):  # padding after the end
        rows.pop()
    return tuple(
        replace(item, target=places.get(address)) if address is not None else item
        for item, address in rows
    )


def _halts(rows: list[tuple[Instruction, int | None]], places: Mapping[int, int]) -> bool:
    """Whether the last instruction is a branch to itself."""
    address = rows[-1][1]
    return address is not None and places.get(address) == len(rows) - 1


def _branch(guard: str | None, opcode: str, operands: str) -> tuple[Instruction, int | None]:
    """A SASS instruction and the address it branches to; a branch's other operands are guards."""
    is_guarded = guard is not None
    if opcode.split(".")[0] not in ("BRA", "JMP"):
        return Instruction(opcode, operands, is_guarded), None
    match = _ADDRESS.search(operands)
    prefix = operands[: match.start()] if match else ""
    address = int(match[1], 16) if match and match[1] else None
    return Instruction(opcode, operands, is_guarded or bool(prefix.strip())), address


def _gcn(text: str) -> tuple[Instruction, ...]:
    labels: dict[str, int] = {}
    program: list[Instruction] = []
    for line in text.splitlines():
        if line.lstrip().startswith(".amdhsa_kernel"):
            break
        code = line.split(";", 1)[0].rstrip()
        label = _LABEL.match(code)
        if label is not None:
            labels[label[1]] = len(program)
            continue
        match = _GCN.match(code)
        if match is not None and match[1].startswith(_GCN_FAMILIES):
            program.append(Instruction(match[1], match[2] or "", match[1].startswith("s_cbranch")))
    return tuple(_jump(item, labels) for item in program)


def _jump(item: Instruction, labels: Mapping[str, int]) -> Instruction:
    if item.opcode == "s_branch" or item.guarded:
        return replace(item, target=labels.get(item.operands.strip()))
    return item


def loops(program: Sequence[Instruction]) -> list[frozenset[int]]:
    """Every natural loop as the set of its instructions' indexes, the smallest first."""
    starts = _leaders(program)
    block_of = {start: number for number, start in enumerate(starts)}
    ends = [*starts[1:], len(program)]
    edges = [[block_of[i] for i in _successors(program, end - 1) if i in block_of] for end in ends]
    order, entries = _order(edges)
    dominators = _dominators(edges, order, entries)
    bodies: dict[int, set[int]] = {}
    sources = _predecessors(edges)
    for block in order:
        for head in edges[block]:
            if dominators[block] >> head & 1:
                bodies.setdefault(head, {head}).update(_body(head, block, sources))
    cycles = [
        frozenset(i for block in body for i in range(starts[block], ends[block]))
        for body in bodies.values()
    ]
    return sorted(cycles, key=len)


def _leaders(program: Sequence[Instruction]) -> list[int]:
    """Indexes at which a basic block starts."""
    leaders = {0}
    for i, item in enumerate(program):
        if item.target is not None:
            leaders.add(item.target)
        if (item.target is not None or item.ends) and i + 1 < len(program):
            leaders.add(i + 1)
    return sorted(leader for leader in leaders if leader < len(program))


def _successors(program: Sequence[Instruction], last: int) -> Iterable[int]:
    item = program[last]
    if item.target is not None:
        yield item.target
    if not item.ends and last + 1 < len(program):
        yield last + 1


def _predecessors(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    sources: list[list[int]] = [[] for _ in edges]
    for block, targets in enumerate(edges):
        for item in targets:
            sources[item].append(block)
    return sources


def _order(edges: Sequence[Sequence[int]]) -> tuple[list[int], set[int]]:
    """Blocks that can be reached, in reverse postorder, and the entries.

    Blocks without a predecessor are entries as well: subroutines, and targets of indirect jumps. If
    all remaining blocks have predecessors (a loop that nothing enters), the first of them is an
    entry.
    """
    targets = {item for target in edges for item in target}
    entries = {0} | {block for block in range(len(edges)) if block not in targets}
    visited: set[int] = set()
    post: list[int] = []
    for entry in (*sorted(entries, reverse=True), *range(len(edges))):
        if entry in visited:
            continue
        entries.add(entry)
        stack = [(entry, iter(edges[entry]))]
        visited.add(entry)
        while stack:
            block, rest = stack[-1]
            target = next((item for item in rest if item not in visited), None)
            if target is None:
                post.append(block)
                stack.pop()
            else:
                visited.add(target)
                stack.append((target, iter(edges[target])))
    return post[::-1], entries


def _dominators(
    edges: Sequence[Sequence[int]], order: Sequence[int], entries: set[int]
) -> list[int]:
    """For each block its dominators, as a bit mask: the blocks on every path to it."""
    sources = _predecessors(edges)
    full = (1 << len(edges)) - 1
    masks = [full] * len(edges)
    for entry in entries:
        masks[entry] = 1 << entry
    changed = True
    while changed:
        changed = False
        for block in order:
            if block in entries:
                continue
            common = full
            for item in sources[block]:
                common &= masks[item]
            common |= 1 << block
            if common != masks[block]:
                masks[block], changed = common, True
    return masks


def _body(head: int, tail: int, sources: Sequence[Sequence[int]]) -> set[int]:
    """Blocks from which `tail` is reached without passing `head`."""
    body, stack = {head}, [tail]
    while stack:
        block = stack.pop()
        if block not in body:
            body.add(block)
            stack.extend(sources[block])
    return body
