"""Reports of result files: those that every command writes, with something in them damaged."""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

from commands import mishap
from dice import Dice
from inputs import Input

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))

import reportresults  # noqa: E402

MORE = {
    "predict": "predict attention -d h100,mi300x --seq 512,2k --heads 32 --kv-heads 8 --causal",
    "whatif": "whatif gemm -d h100 --m 1k",
    "graph": "graph decoder-layer -d h100",
    "trace": f"trace {TESTS / 'tracedmodels.py'}:GatedMlp -i x:bf16[1,64,512] -d h100",
}
"""Commands beside those of `reportresults`."""


@cache
def sound() -> dict[str, bytes]:
    """A result file of each kind, by name."""
    with tempfile.TemporaryDirectory() as name, redirect_stderr(io.StringIO()):
        folder = Path(name)
        reportresults.write(folder, MORE)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def make(dice: Dice) -> Input:
    """A report of one or two results, of which some are damaged."""
    files = {name: sound()[name] for name in dice.sample(sorted(sound()), dice.choice((1, 1, 2)))}
    for name in files:
        if dice.chance(0.9):
            files[name] = _damaged(dice, name, files[name])
    arguments = ["report", *files, "-o", "page.html"]
    if dice.chance(0.05):
        arguments = mishap(dice, arguments)
    return Input("results", tuple(arguments), files)


def _damaged(dice: Dice, name: str, content: bytes) -> bytes:
    """A result with a cell or member changed; now and then with bytes changed."""
    if dice.chance(0.1):
        return dice.broken(content)
    text = content.decode("utf-8")
    if name.endswith(".json"):
        text = json.dumps(dice.document(json.loads(text)))
        return text.encode("utf-8", "surrogatepass")
    rows = list(csv.reader(io.StringIO(text)))
    row = dice.choice(rows[1:] if dice.chance(0.85) else rows)
    place = dice.randrange(len(row))
    row[place] = dice.choice((dice.hostile(), dice.damaged(row[place]), str(dice.value())))
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")
