"""Declared algorithms for `explain` and `map`: shipped ones damaged, and small ones made up."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import yaml
from commands import mishap
from dice import Dice
from inputs import Input

FOLDER = Path(__file__).resolve().parents[2] / "perfmodel" / "algorithms" / "declared"
_HEAVY = ("conv", "mla-expanded", "moe", "mla")  # seconds each
_EXPRESSIONS = (
    "0", "-1", "1e308*10", "2**70", "n", "m / n", "m // n", "log2(m)", "sqrt(-1)", "ceil(1e308*10)",
    "min(m, 4)", "max()", "m / 0", "1.5", "nan", "True", "m +", "()", "__import__('os')", "m.real",
    "(" * 150, "-" * 199, "9" * 190, "m * m * m * m * m", "4096", "8", "64", "m", "n * 2",
    "lambda: 1",
)  # fmt: skip


class _Plain(yaml.SafeDumper):
    """Writes what stands in two places twice: no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@lru_cache(maxsize=1)
def documents() -> tuple[dict, ...]:
    """The shipped declarations that are explained in a moment."""
    paths = [path for path in sorted(FOLDER.glob("*.yaml")) if path.stem not in _HEAVY]
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths)


def written(dice: Dice) -> str:
    """A declaration as YAML, with up to two things in it changed."""
    document = dice.choice(documents()) if dice.chance(0.5) else _made(dice)
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        document = _damaged(dice, document)
    return yaml.dump(document, Dumper=_Plain, allow_unicode=True, sort_keys=False)


def make(dice: Dice) -> Input:
    """A command that reads a declaration."""
    text = written(dice)
    if dice.chance(0.1):
        text = dice.damaged(text)
    data = text.encode("utf-8", "surrogatepass")
    if dice.chance(0.03):
        data = dice.broken(data)
    if dice.chance(0.93):
        arguments = ["explain", "mine.yaml"]
        arguments += ["-f", dice.choice(("text", "markdown", "latex", "json"))]
        if dice.chance(0.2):
            arguments += ["--schedule", dice.choice(("standard", "auto", "tiled-1"))]
        if dice.chance(0.2):
            arguments += [
                "--fuse",
                dice.choice(("multiply", "a+b", "first,second", "first+second")),
            ]
    else:
        arguments = [
            "map",
            "mine.yaml",
            "-d",
            "h100-sxm",
            "-f",
            dice.choice(("json", "csv", "table")),
        ]
        if dice.chance(0.4):
            arguments += [
                "--objective",
                "bytes",
                "--capacity",
                dice.choice(("1 MiB", "1 B", "50 MiB")),
            ]
    if dice.chance(0.3):
        arguments += [f"--{dice.choice(('m', 'n', 'seq', 'batch'))}", dice.sizes()]
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("algorithms", tuple(arguments), {"mine.yaml": data})


def _damaged(dice: Dice, document: object) -> object:
    """Something in it replaced, by an expression where there is one."""
    if isinstance(document, dict) and dice.chance(0.6):
        table = document.get(dice.choice(("axes", "parameters", "mask")))
        if isinstance(table, dict) and table:
            name = dice.choice(list(table))
            new = {**table, name: dice.choice(_EXPRESSIONS)}
            return {key: new if value is table else value for key, value in document.items()}
    return dice.document(document)


def _made(dice: Dice) -> dict:
    """One or two steps over two to four axes."""
    size = dice.choice((8, 64, 1000, 4096, 2**20, 2**40))
    document = {
        "name": dice.choice(("mine", "mine", "=cmd", dice.hostile())),
        "about": dice.choice(("A product", dice.hostile())),
        "parameters": {"m": size, "n": dice.choice((64, "m")), "k": 128},
        "axes": {"i": "m", "j": "n", "l": "k"},
        "tensors": {"A": ["i", "l"], "B": ["l", "j"], "C": ["i", "j"], "D": ["i", "j"]},
        "steps": {
            "first": {"contraction": ["A", "B"], "to": "C", "over": "l"},
            "second": {dice.choice(("map", "normalisation", "reduction")): "C", "to": "D"},
        },
        "outputs": "D",
    }
    if "normalisation" in document["steps"]["second"]:
        document["steps"]["second"]["along"] = "j"
    if dice.chance(0.3):
        document["mask"] = {
            "query": "i",
            "key": "j",
            "causal": True,
            "window": dice.choice((0, 5, -3, 2.5)),
        }
    return document
