"""Files damaged as their format lets them be: values of documents, cells and columns of tables,
lines, words, bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import yaml
from dice import Dice

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
VALUES = (
    "0 MHz", "-5 GB/s", "1e400 TB/s", "1e-320 B/s", "3 furlongs", "0", "1", "-1", "[]", "{}", "~",
    "null", "true", "0x10", "1e3", "2024-01-01", "1_000", "'=cmd'", "\"\\e[31m\"", "!!int 5",
    "&a 1", "*a", "{value: 1}", "[1, 2]", "1e-9 GB/s", "5 cycles", "1e200 W", "m / 0", "2**70",
    "1e308*10", "log2(m)", "sqrt(-1)", "m +", "()", "(" * 150, "-" * 199, "9" * 190, "lambda: 1",
    "__import__('os')", "4096", "0.5", "seq", "foo", "fp8", "host", "auto", "cublas",
)  # fmt: skip
"""Values of YAML: quantities, expressions, names, and what YAML reads as something else."""
CELLS = (
    "", " ", "0", "-1", "1e999", "nan", "inf", "²", "٣", "9" * 5000, "1,234.5", "1.234,5", "1_0",
    "n/a", "\0", '"', "::", "<(", "perfmodel|", "perfmodel|op=gemm", "fwd", "fp8", "OOM",
    "perfmodel|op=gemm|dtype=bf16|m=²", "=cmd|' /C calc'!A0", "\x1b[31m", "a" * 20_000, "\u2028",
    str(2**62), str(2**64), "1e-308", "time_ms", "Latency (s)", "TFLOPS", "nheads", "device", "op",
)  # fmt: skip
"""Cells of a table, and headings."""
NO_YAML = (
    "", "{" * 300, "[" * 20_000, "- " * 300, "a: " * 300, "? " * 300, "---\n---\n", "&a [*a]",
    "!!python/object/apply:os.system ['touch marker']", "{? {a: 1} : 2}", "%YAML 9.9\n---\na: 1\n",
    "a: 1\na: 2\n", "\x00", "x" * 300_000, "? [1, 2]\n: 3\n", "{a: 1", "a:\n\tb: 1\n",
    "9" * 6000 + ": 1", "a: " + "9" * 6000,
)  # fmt: skip


class _Plain(yaml.SafeDumper):
    """Writes what stands in two places twice: no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def damaged(dice: Dice, name: str, data: bytes) -> bytes:
    """A file with up to four mishaps; now and then none."""
    if name.endswith(".gz"):
        inner = damaged(dice, name.removesuffix(".gz"), gzip.decompress(data))
        packed = gzip.compress(inner, 1)
        return dice.broken(packed) if dice.chance(0.1) else packed
    suffix = name.rpartition(".")[2]
    ways = {"yaml": (lines, lines, values), "json": (values,), "parquet": (columns,)}
    for _ in range(dice.choice((0, 1, 1, 1, 2, 4))):
        draw = dice.random()
        if draw < 0.1:
            data = dice.broken(data)
        elif draw < 0.2 and suffix != "parquet":
            data = _text(dice.damaged, data)
        else:
            way: Callable[..., bytes] = dice.choice(ways.get(suffix, (cells,)))
            with suppress(ValueError, yaml.YAMLError, csv.Error, RecursionError):
                data = way(dice, data, suffix) if way is values else way(dice, data)
    return data


def _text(change: Callable[[str], str], data: bytes) -> bytes:
    return change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogatepass")


def values(dice: Dice, data: bytes, suffix: str) -> bytes:
    """A document with something replaced, removed, added or doubled."""
    if suffix == "json":
        found = dice.document(json.loads(data))
        return json.dumps(found).encode("utf-8", "surrogatepass")
    if dice.chance(0.05):
        return dice.choice(NO_YAML).encode("utf-8", "surrogatepass")
    document = dice.document(yaml.safe_load(data))
    text = yaml.dump(document, Dumper=_Plain, allow_unicode=True, sort_keys=False)
    return text.encode("utf-8", "surrogatepass")


def lines(dice: Dice, data: bytes) -> bytes:
    """A text with one line changed: its value, a number of it, or the line itself."""
    found = data.decode("utf-8").splitlines(keepends=True)
    if not found:
        return data
    place, draw = dice.randrange(len(found)), dice.random()
    if draw < 0.45:
        found[place] = _valued(dice, found[place])
    elif draw < 0.65:
        found[place] = _NUMBER.sub(lambda at: _scaled(dice, at[0]), found[place], count=1)
    elif draw < 0.8:
        del found[place : place + dice.choice((1, 1, 3))]
    elif draw < 0.85:
        found.insert(place, dice.choice(found))
    else:
        found.insert(place, " " * dice.randrange(0, 8) + dice.hostile() + "\n")
    return "".join(found).encode("utf-8", "surrogatepass")


def _valued(dice: Dice, line: str) -> str:
    """The line with one of its values replaced, the keys as they are."""
    at = [*re.finditer(r'(?<=: )("[^"]*"|[^,{}\[\]\n]+)', line)]
    if not at:
        return line
    place = dice.choice(at)
    new = dice.choice((*VALUES, f'"{dice.choice(VALUES)}"', dice.hostile()))
    return line[: place.start()] + new + line[place.end() :]


def _scaled(dice: Dice, number: str) -> str:
    by = dice.choice((0, 1e-30, 1e-9, 1e-3, 0.5, 0.98, 0.99, 1.01, 1.02, 2, 10, 1e6, 1e30))
    scaled = float(number) * by
    return str(round(scaled)) if "." not in number and scaled < 1e15 else f"{scaled:g}"


def cells(dice: Dice, data: bytes) -> bytes:
    """A table with a cell that holds what it should not, or a column gone or called otherwise."""
    text = data.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    filled = [row for row in rows if row]
    if not filled:
        return data
    row, draw = dice.choice(filled), dice.random()
    place = dice.randrange(len(row))
    if draw < 0.6:
        row[place] = dice.choice((*CELLS, dice.hostile(), dice.damaged(row[place])))
    elif draw < 0.75:
        for each in rows:
            del each[place : place + 1]
    elif draw < 0.85:
        max(filled, key=len)[place % len(max(filled, key=len))] = dice.choice(CELLS)
    elif draw < 0.95:
        rows.insert(dice.randrange(len(rows)), dice.choice((row, ["==PROF== x"], [])))
    else:
        rows.remove(row)
    out = io.StringIO()
    delimiter = dice.choice("," * 18 + ";\t")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def columns(dice: Dice, data: bytes) -> bytes:
    """A sound Parquet file, but with a column renamed, dropped, emptied or of another type."""
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, RuntimeError) as error:
        raise ValueError from error
    place, n = dice.randrange(table.num_columns), table.num_rows
    name = table.column_names[place]
    other: tuple[Any, ...] = (
        ["x"] * n, [None] * n, [float("nan")] * n, [[1]] * n, [{"a": 1}] * n, [b"\xff\x00"] * n,
        [datetime.datetime(2024, 1, 1)] * n, [decimal.Decimal("1.50")] * n, [True] * n, [0] * n,
        [datetime.timedelta(1)] * n, [-1] * n, [2**62] * n, [dice.hostile()] * n,
    )  # fmt: skip
    draw = dice.random()
    if draw < 0.15:
        table = table.remove_column(place)
    elif draw < 0.3:
        name = dice.choice(CELLS)
        table = table.rename_columns([name if i == place else old for i, old in
                                      enumerate(table.column_names)])  # fmt: skip
    elif draw < 0.4:
        table = table.set_column(place, name, pa.array([1.5] * n, pa.float16()))
    else:
        with suppress(UnicodeError):
            table = table.set_column(place, name, pa.array(dice.choice(other)))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
