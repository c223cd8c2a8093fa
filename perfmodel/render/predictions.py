"""Predictions as a report: what varies in columns, what does not in the title."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from perfmodel.hardware.levels import OWN, together
from perfmodel.render.report import Column, Report, Row, binary, micros, quantity, ratio, text

TERMS_ACROSS = 6  # predictions shown side by side when every term is asked for


def report(
    rows: Iterable[Row],
    examples: Sequence[Row],
    varying: Sequence[str],
    follows: Mapping[str, str],
    tile: Sequence[str] = (),
) -> Report:
    """A line per prediction; `varying` are the problem's fields that differ between them.

    `follows` maps a field to another one that it always equals; `examples` are rows that together
    have every key; `tile` are dimensions of a tile that the user has set.
    """
    return Report(
        "predictions",
        rows,
        [*_who(examples, varying), *map(_dimension, tile), *_summary(examples)],
        title=_title(examples, varying, follows),
        notes=_notes(examples),
        examples=examples,
    )


def terms(
    rows: Iterable[Row],
    examples: Sequence[Row],
    varying: Sequence[str],
    follows: Mapping[str, str],
    tile: Sequence[str] = (),
) -> Report:
    """Every term: predictions side by side where they are few, else more columns for each line."""
    rows = iter(rows)
    first = list(islice(rows, TERMS_ACROSS + 1))
    wide = report(chain(first, rows), examples, varying, follows, tile)
    if len(first) > TERMS_ACROSS:
        called = _called(examples)
        extra = [
            _nested(f"{called.get(name, name)} time", "terms_us", name, micros)
            for name in _names(examples)
        ]
        return replace(wide, columns=[*wide.columns, *extra])
    columns = [text("", "quantity")]
    columns += [_entry(_label(row, varying), i) for i, row in enumerate(first)]
    lines = [{"quantity": name, "values": values} for name, values in _lines(first)]
    return Report("predictions", lines, columns, title=wide.title, notes=_notes(first))


def _notes(rows: Sequence[Row]) -> list[str]:
    """What devices exchange, what is known and what was assumed, each once."""
    said = dict.fromkeys(item for row in rows for item in row["assumptions"])
    crossing = dict.fromkeys(
        f"{item['kind']} of {item['tensor']} over {item['level']}, {item['ranks']} devices"
        for row in rows
        for item in row["exchanges"]
    )
    known = dict.fromkeys(
        ", ".join(f"{what} {level}" for what, level in row["known"].items()) for row in rows
    )
    return [
        *(f"exchange: {item}" for item in crossing),
        *(f"known: {item}" for item in known),
        *(f"assumed: {item}" for item in said),
    ]


def _title(examples: Sequence[Row], varying: Sequence[str], follows: Mapping[str, str]) -> str:
    """What all predictions share."""
    row = examples[0]
    hidden = {*varying, *(name for name, other in follows.items() if other in varying)}
    fixed = [f"{k}={v}" for k, v in row["problem"].items() if k not in hidden]
    return f"{row['algorithm']}: {' '.join(fixed)}"


def _who(examples: Sequence[Row], varying: Sequence[str]) -> list[Column]:
    columns = [text("device", "device"), text("schedule", "schedule")]
    if any(row.get("implementation") for row in examples):
        columns.append(text("implementation", "implementation"))
    return [*columns, *(_problem(name) for name in varying)]


def _problem(name: str) -> Column:
    return Column(name, lambda row: row["problem"].get(name), str)


def _dimension(name: str) -> Column:
    return Column(f"tile {name}", lambda row: row["tile"].get(name), _count)


def _nested(header: str, key: str, name: str, show: Callable[[Any], str]) -> Column:
    return Column(header, lambda row: row[key].get(name), show)


def _range(row: Row) -> str:
    return f"{micros(row['low_us'])} to {micros(row['high_us'])}"


def _work(row: Row) -> float:
    """Operations that a rate is quoted in: the papers' convention where there is one."""
    flops = row["flops"]
    work: float = row["useful_flops"] or flops["matrix"] or flops["vector"] + flops["special"]
    return work


def _memory(row: Row) -> str:
    """What lies in the device's own memory, and what lies elsewhere."""
    beyond = (
        f" + {binary(held)} {name}" for name, held in row["footprints"].items() if name != "hbm"
    )
    return binary(row["footprint_bytes"]) + "".join(beyond) + ("" if row["fits"] else "*")


def _limiter(row: Row) -> str:
    """The limiter, and the runner-up as a share of it."""
    limiter, next_one, times = row["limiter"], row["runner_up"], row["terms_us"]
    share, called = times[next_one] / times[limiter], row["levels"]
    return f"{called.get(limiter, limiter)} ({called.get(next_one, next_one)} {share:.0%})"


def _called(rows: Sequence[Row]) -> dict[str, str]:
    """What to call each level of memory in a header: by its name on the devices shown."""
    names: dict[str, list[str]] = {}
    for row in rows:
        for level, name in row["levels"].items():
            names.setdefault(level, []).append(name)
    return {level: together(found, _GENERIC.get(level, level)) for level, found in names.items()}


_GENERIC = {"hbm": "main memory", "l2": "L2", "llc": "LLC"}


def _summary(examples: Sequence[Row]) -> list[Column]:
    called = _called(examples)
    outside = ["hbm", *(name for name in called if name not in OWN)]
    return [
        Column("time", lambda row: row["time_us"], micros),
        Column("range", _range, str),
        Column("limiter (next)", _limiter, str, number=False),
        Column("rate", lambda row: _work(row) / row["time_us"] * 1e6, quantity("FLOP/s")),
        *(_nested(called.get(name, name), "bytes", name, quantity("B")) for name in outside),
        _nested("FLOP/B", "arithmetic_intensity", "hbm", ratio),
        Column("memory", _memory, str),
    ]


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row["terms_us"]))


def _label(row: Row, varying: Sequence[str]) -> str:
    parts = [row["device"], row["schedule"], *(f"{k}={row['problem'].get(k)}" for k in varying)]
    return " ".join(parts)


def _entry(header: str, i: int) -> Column:
    return Column(header, lambda row: row["values"][i], str)


def _lines(rows: Sequence[Row]) -> Iterable[tuple[str, list[str]]]:
    """Every quantity of the predictions, as text, one line for all of them."""
    called = _called(rows)
    for column in (*_summary(rows), Column("waves", lambda row: row["waves"], ratio)):
        yield column.header, [column.cell(row) for row in rows]
    yield "occupancy", [f"{row['occupancy']:.3g} blocks per unit" for row in rows]
    tiles = [" ".join(f"{k}={_count(v)}" for k, v in row["tile"].items()) for row in rows]
    yield "tile", tiles
    groups: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("time", "terms_us", micros),
        ("operations", "flops", quantity("OP")),
        ("bytes", "bytes", quantity("B")),
        ("FLOP per byte", "arithmetic_intensity", ratio),
    )
    for what, key, show in groups:
        for name in dict.fromkeys(name for row in rows for name in row[key]):
            column = _nested("", key, name, show)
            cells = [column.cell(row) for row in rows]
            if (key, name) == ("terms_us", "power"):
                slack = ["" if row["limiter"] == "power" else ", slack" for row in rows]
                cells = [cell + more for cell, more in zip(cells, slack, strict=True)]
            yield f"{called.get(name, name)} {what}", cells


def _count(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"
