"""The table of embedding look-ups by placement."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.columns import DIFFERS, SOME
from perfmodel.embeddings.bag import Bags
from perfmodel.embeddings.dlrm import Recommender
from perfmodel.embeddings.placement import break_even_hit
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.render.report import Column, Report, Row, binary, text
from perfmodel.render.trees import own

_RANGE = "range: what opening a page of memory costs a row, between nothing and 128 bytes' worth"
_PAYS = "pays at: the hit rate from which the cache is faster than the host's CPU alone"


def _device(row: Row) -> str:
    return str(row["device"]) if row["devices"] == 1 else f"{row['devices']} x {row['device']}"


_COLUMNS = (
    Column("batch", "batch", when=DIFFERS),
    text("tables in", "placement"),
    Column("device", _device, number=False, key="device"),
    *own("time_us", "low_us"),
    Column("hit", "hit"),
    *own("limiter"),
    Column("dense", "dense_us"),
    Column("samples/s", "samples_per_s", "count"),
    Column("pays at", "break_even_hit", when=SOME),
)


def row(
    placed: Tree, bags: Bags, device: Device, host: Device | None, model: Recommender | None
) -> Row:
    """A placement as a row; of a recommender, with its dense layers."""
    cached = host is not None and placed.name == "cached"
    batch = -(-bags.batch // placed.settings["devices"])
    dense = None if model is None else model.dense_seconds(batch, device)
    return placed.as_row(
        dense_us=None if dense is None else dense * 1e6,
        samples_per_s=bags.batch / (placed.seconds + (dense or 0.0)),
        break_even_hit=break_even_hit(bags, device, host) if host and cached else None,
    )


def report(rows: Sequence[Row], batches: Sequence[Bags], model: Recommender | None) -> Report:
    """One line for each batch, device and placement."""
    lacking = dict.fromkeys(_device(row) for row in rows if not row["fits"])
    notes = [f"the tables do not fit on {', '.join(lacking)}"] if lacking else []
    pays = any(row["break_even_hit"] is not None for row in rows)
    notes += [_PAYS, _RANGE] if pays else [_RANGE]
    bags = batches[-1]
    title = (
        f"{'embedding bags' if model is None else model.name}: {len(bags.tables)} tables of "
        f"{binary(bags.table_bytes)} in all, {bags.lookups / bags.batch:g} look-ups a sample, rows "
        f"of {bags.row_bytes:g} B, zipf {bags.exponent:g}"
    )
    title += f", {bags.batch:,} samples" if len(batches) == 1 else ""
    return Report("placements", rows, _COLUMNS, title, notes=notes, examples=rows)
