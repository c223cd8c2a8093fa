"""Graphs of operators: shipped ones at any size, and files, whole and damaged."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import yaml
from commands import device, mishap, shown
from dice import TYPES, Dice
from inputs import Input

FOLDER = Path(__file__).resolve().parents[2] / "perfmodel" / "graph" / "declared"
_EXPRESSIONS = (
    "0", "-1", "1e308*10", "2**70", "batch / seq", "log2(batch)", "sqrt(-1)", "batch * seq", "nan",
    "True", "batch +", "()", "9" * 190, "(" * 150, "4096", 8, 0.5, "seq", "hidden", "lambda: 1",
)  # fmt: skip
_OPERATORS = (
    "gemm", "softmax", "rmsnorm", "attention", "pointwise", "quantise", "rotary", "moe", "foo",
    "mla", "cross-entropy", "./none.yaml", "adamw", "embedding", "kv-write",
)  # fmt: skip


@lru_cache(maxsize=1)
def documents() -> tuple[dict, ...]:
    """The shipped graphs."""
    return tuple(
        yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted(FOLDER.glob("*.yaml"))
    )


def make(dice: Dice) -> Input:
    """A command that predicts a graph."""
    files: dict[str, bytes] = {}
    shipped = dice.choice(documents())
    name = str(shipped["name"]) if dice.chance(0.98) else dice.choice(("foo", "none.yaml", "."))
    if dice.chance(0.5):
        name, files = "mine.yaml", {"mine.yaml": _file(dice, shipped)}
    arguments = ["graph", name, "-d", device(dice)]
    if dice.chance(0.1):
        arguments += ["--device", device(dice)]
    for key in dice.some([*shipped["sizes"]], 0.1):
        arguments += [dice.choice(("-s", "--size")), f"{key}={_size(dice)}"]
    if dice.chance(0.03):
        arguments += ["--size", dice.choice(("foo=1", "batch", "=", "batch=1,batch=2", "seq=1:4"))]
    for flag, words in (
        ("--dtype", ("fp16", "bf16", *TYPES)),
        ("--harness", ("cuda_graph", "cuda_events_eager", "profiler", "wall_clock", "foo")),
        ("--by", ("node", "operator", "operator", "foo")),
    ):
        if dice.chance(0.1):
            arguments += [flag, dice.choice(words)]
    arguments += shown(dice)
    if dice.chance(0.06):
        arguments = mishap(dice, arguments)
    return Input("graphs", tuple(arguments), files, terminal=dice.chance(0.1))


def _size(dice: Dice) -> str:
    """A value of a size of the graph."""
    return dice.choice(("0", "0.5", dice.hostile())) if dice.chance(0.1) else dice.size(20)


def _file(dice: Dice, document: dict) -> bytes:
    """A declaration with up to two things in it changed."""
    for _ in range(dice.choice((0, 1, 1, 2))):
        document = _changed(dice, document)
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    if dice.chance(0.08):
        text = dice.damaged(text)
    data = text.encode("utf-8", "surrogatepass")
    return dice.broken(data) if dice.chance(0.03) else data


def _changed(dice: Dice, document: dict) -> dict:
    """A size, a node or a tensor that is another, or anything anywhere."""
    found = json.loads(json.dumps(document))
    nodes, draw = found.get("nodes"), dice.randrange(5)
    if draw == 0 and isinstance(found.get("sizes"), dict) and found["sizes"]:
        found["sizes"][dice.choice(list(found["sizes"]))] = dice.choice(_EXPRESSIONS)
        return found
    if draw in (1, 2) and isinstance(nodes, dict) and nodes:
        node = nodes[dice.choice(list(nodes))]
        if isinstance(node, dict):
            _node(dice, node)
            return found
    if draw == 3 and isinstance(found.get("tensors"), dict) and found["tensors"]:
        key = dice.choice(list(found["tensors"]))
        found["tensors"][key] = {
            "shape": ["batch", dice.choice(_EXPRESSIONS)],
            dice.choice(("place", "type", "over")): dice.choice(("host", "peer", "fp8", "x", "q")),
        }
        return found
    changed = dice.document(document)
    return changed if isinstance(changed, dict) else {"name": changed}


def _node(dice: Dice, node: dict) -> None:
    """Something of a node is another."""
    draw = dice.randrange(5)
    if draw == 0:
        node["operator"] = dice.choice(_OPERATORS)
    elif draw == 1:
        node["repeat"] = dice.choice((0, 1, 3, 32, -1, "seq", 10**9, 1.5, "x"))
    elif draw == 2:
        node["schedule"] = dice.choice(("auto", "unfused", "tiled", "standard", "foo"))
    elif draw == 3:
        node["implementation"] = dice.choice(("cublas", "flash3", "foo", "fused-rows", 3, ""))
    elif isinstance(node.get("sizes"), dict) and node["sizes"]:
        node["sizes"][dice.choice(list(node["sizes"]))] = dice.choice(_EXPRESSIONS)
