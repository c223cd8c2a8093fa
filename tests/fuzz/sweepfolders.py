"""Finished sweeps with a manifest edited, files damaged, exchanged or missing; then asked."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import redirect_stderr, suppress
from functools import cache
from pathlib import Path

from commands import mishap, question, shown
from dice import Dice
from inputs import Input

SWEEPS = (
    ("softmax", "-d", "h100-sxm,b200", "--rows", "1:6", "--cols", "64,4k", "--chunk", "5"),
    ("attention", "-d", "a100", "--heads", "8", "--kv-heads", "2,3,8", "--seq", "1,512",
     "--chunk", "4"),
    ("gemm", "-d", "h100-sxm", "-m", "1:20", "--dtype", "bf16,fp8"),
)  # fmt: skip


@cache
def finished(which: int) -> dict[str, bytes]:
    """The files of one of the sweeps."""
    from perfmodel.cli import run

    with tempfile.TemporaryDirectory() as name, redirect_stderr(io.StringIO()):
        assert run(["sweep", *SWEEPS[which], "--output", f"{name}/sweep"]) == 0
        folder = Path(name) / "sweep"
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
        return {str(path.relative_to(folder.parent)): path.read_bytes() for path in sorted(paths)}


def make(dice: Dice) -> Input:
    """A question to a damaged sweep, or the sweep begun again over it."""
    which = dice.randrange(len(SWEEPS))
    files = dict(finished(which))
    for _ in range(dice.choice((1, 1, 2))):
        _mishap(dice, files)
    if dice.chance(0.8):
        arguments = ["sweep", "ask", "sweep", *question(dice), *shown(dice, files=False)]
    else:
        arguments = ["sweep", *SWEEPS[which], "--output", "sweep"]
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("sweeps", tuple(arguments), files)


def _mishap(dice: Dice, files: dict[str, bytes]) -> None:
    if not files:
        return
    draw = dice.random()
    if draw < 0.5 and "sweep/manifest.json" in files:
        text = files["sweep/manifest.json"].decode("utf-8", "replace")
        if dice.chance(0.15):
            text = dice.damaged(text)
        else:
            with suppress(ValueError):
                text = json.dumps(dice.document(json.loads(text)))
        files["sweep/manifest.json"] = text.encode("utf-8", "surrogatepass")
        return
    name = dice.choice(sorted(files))
    if draw < 0.8:
        files[name] = dice.broken(files[name])
    elif draw < 0.85:
        files[name] = files[dice.choice(sorted(files))]
    elif draw < 0.9:
        del files[name]
    elif draw < 0.95 and name.endswith(".parquet"):
        files[name] = _rewritten(dice, files[name])
    else:
        files[name] = dice.choice((b"", b"PAR1", b"PAR1PAR1", b"{}", b"\x00" * 50))


def _rewritten(dice: Dice, data: bytes) -> bytes:
    """A sound file, but with a column renamed, dropped, emptied or of another type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError, RuntimeError):
        return data
    place = dice.randrange(table.num_columns)
    draw, n = dice.randrange(5), table.num_rows
    other = {
        0: pa.array(["x"] * n),
        1: pa.nulls(n),
        2: pa.array([float("nan")] * n),
        3: pa.array([[1]] * n),
    }
    if draw == 4:
        table = table.remove_column(place)
    else:
        table = table.set_column(place, table.column_names[place], other[draw])
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
