"""The loops of a function in a compiler's assembly, for x86 and Arm."""

from __future__ import annotations

import re

_LABEL = re.compile(r"(\.?L\w+):")
_BACK = re.compile(r"(?:j(?!mp)\w+\s+|b\.?\w+\s+|cbn?z\s+\w+,\s*|tbn?z\s+.*,\s*)(\.?L\w+)\b")
_STACK = re.compile(r"\(%[re](?:sp|bp)\b|\[(?:sp|x29)\b")


def functions(assembly: str) -> dict[str, list[str]]:
    """The lines of each function."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in assembly.splitlines():
        name = re.match(r"_?([a-z]\w*):", line)
        if name:
            lines = found.setdefault(name[1], [])
        else:
            lines.append(line.strip())
    return found


def loops(lines: list[str]) -> list[list[str]]:
    """Instructions of each innermost loop, from a label to the branch back to it."""
    at: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for place, line in enumerate(lines):
        if label := _LABEL.match(line):
            at[label[1]] = place
        elif (back := _BACK.match(line)) and back[1] in at:
            found.append((at[back[1]], place))
    inner = [
        (start, end)
        for start, end in found
        if not any(start <= a and b <= end and (a, b) != (start, end) for a, b in found)
    ]
    return [[x for x in lines[a : b + 1] if re.match(r"[a-z]", x)] for a, b in inner]


def stack_traffic(loop: list[str]) -> list[str]:
    """Instructions that read or write the stack."""
    return [line for line in loop if _STACK.search(line)]
