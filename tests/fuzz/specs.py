"""Hardware specs: shipped ones with lines and values damaged, and texts that are none."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from commands import OPERATORS, mishap, problem, shown
from dice import DEVICES, Dice
from inputs import Input

FOLDER = Path(__file__).resolve().parents[2] / "hardware_specs"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VALUES = (
    "0 MHz", "-5 GB/s", "1e400 TB/s", "1e-320 B/s", "3 furlongs", "0", "1", "-1", "[]", "{}",
    "null", "true", "yes", "0x10", "1e3", "2024-01-01", "1_000", "'=cmd'", "\"\\e[31m\"", "~",
    "!!int 5", "&a 1", "*a", "{value: 1}", "[1, 2]", "1e300 TB/s", "1 B/s",
    "1e-9 GB/s", "5 cycles", "1e200 W",
)  # fmt: skip


@lru_cache(maxsize=1)
def texts() -> tuple[str, ...]:
    """The shipped specs."""
    return tuple(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml")))


def make(dice: Dice) -> Input:
    """A command that reads a damaged spec."""
    content = _nonsense(dice) if dice.chance(0.06) else _damaged(dice, dice.choice(texts()))
    data = content.encode("utf-8", "surrogatepass")
    if dice.chance(0.05):
        data = dice.broken(data)
    arguments = _arguments(dice)
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("specs", tuple(arguments), {"spec.yaml": data})


def _arguments(dice: Dice) -> list[str]:
    action = dice.choices(
        ("validate", "show", "diff", "predict", "whatif", "trend"), (3, 1, 1, 4, 1, 0.5)
    )[0]
    if action == "validate":
        return ["hardware", "validate", "spec.yaml", *dice.some(("--warnings",), 0.5)]
    if action == "show":
        return ["hardware", "show", "./spec.yaml", *shown(dice)]
    if action == "diff":
        return ["hardware", "diff", "./spec.yaml", dice.choice(DEVICES), *shown(dice)]
    if action == "trend":
        return ["trend", "-d", "./spec.yaml", *shown(dice)]
    operator = dice.choice(list(OPERATORS))
    sizes = problem(dice, operator, share=0.1)
    return [action, operator, "--device", "./spec.yaml", *sizes, *shown(dice)]


def _damaged(dice: Dice, text: str) -> str:
    """A spec with one to four lines changed."""
    lines = text.splitlines(keepends=True)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place = dice.randrange(len(lines))
        draw = dice.random()
        if draw < 0.4:
            lines[place] = _valued(dice, lines[place])
        elif draw < 0.6:
            lines[place] = _NUMBER.sub(lambda found: _scaled(dice, found[0]), lines[place], count=1)
        elif draw < 0.75:
            del lines[place : place + dice.choice((1, 1, 3))]
        elif draw < 0.8:
            lines.insert(place, dice.choice(lines))
        elif draw < 0.9:
            lines[place] = dice.damaged(lines[place])
        else:
            lines.insert(place, " " * dice.randrange(0, 8) + dice.hostile() + "\n")
        if not lines:
            break
    return "".join(lines)


def _valued(dice: Dice, line: str) -> str:
    """The line with one of its values replaced, the keys as they are."""
    found = [*re.finditer(r'(?<=: )("[^"]*"|[^,{}\[\]]+)', line)]
    if not found:
        return line
    value = dice.choice(found)
    new = dice.choice((*_VALUES, f'"{dice.choice(_VALUES)}"', dice.hostile()))
    return line[: value.start()] + new + line[value.end() :]


def _scaled(dice: Dice, number: str) -> str:
    by = dice.choice((0, 1e-30, 1e-9, 1e-3, 0.5, 0.98, 0.99, 1.01, 1.02, 2, 10, 1e6, 1e30))
    scaled = float(number) * by
    return str(round(scaled)) if "." not in number and scaled < 1e15 else f"{scaled:g}"


def _nonsense(dice: Dice) -> str:
    deep = dice.choice((5, 17, 300, 20000))
    return dice.choice((
        "", "{" * deep, "[" * deep, "- " * deep, "a: " * deep, "? " * deep, "a: {" * deep,
        "---\n---\n",
        "!!python/object/apply:os.system ['touch marker']", "&a [*a]", "{? {a: 1} : 2}",
        "a: |\n  x\n",
        "slug: x\n", "%YAML 9.9\n---\na: 1\n", "a: 1\na: 2\n", "\x00", "\ufeffslug: x",
        "x" * 300_000,
        dice.hostile(), "? [1, 2]\n: 3\n", "{a: 1", "a:\n\tb: 1\n", "9" * 6000 + ": 1",
        "a: " + "9" * 6000,
    ))  # fmt: skip
