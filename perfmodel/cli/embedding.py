"""`perfmodel embedding`: look-ups in embedding tables in CPU memory, in HBM, cached or sharded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known, ranges
from perfmodel.cli.arguments import Devices
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.embeddings import dlrm
from perfmodel.embeddings.bag import Bags, equal_tables
from perfmodel.embeddings.dlrm import Recommender
from perfmodel.embeddings.placement import Placed, break_even_hit, cached, in_memory, sharded
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load, systems
from perfmodel.render import embeddings as render
from perfmodel.render.report import in_micros
from perfmodel.units import binary

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("embedding")
def embedding(
    device: Devices,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="A recommender, with its tables and dense layers: dlrm-dcnv2.",
            autocompletion=completing.of_list(dlrm.names),
        ),
    ] = None,
    tables: Annotated[
        str, typer.Option("--tables", metavar="N", help="Number of tables, all of one size.")
    ] = "26",
    rows: Annotated[str, typer.Option("--rows", metavar="N", help="Rows of each table.")] = "1M",
    dim: Annotated[str, typer.Option("--dim", metavar="N", help="Elements of a row.")] = "128",
    lookups: Annotated[
        str, typer.Option("--lookups", metavar="N", help="Look-ups of one sample, over all tables.")
    ] = "26",
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type of the rows' elements.",
            autocompletion=completing.types,
        ),
    ] = "fp32",
    zipf: Annotated[
        float,
        typer.Option(
            "--zipf",
            metavar="A",
            help="Exponent of Zipf's law for the popularity of rows; 0: all rows equal.",
        ),
    ] = 1.05,
    batch: Annotated[
        str,
        typer.Option(
            "--batch", metavar="SIZES", help="Samples: a size, list (1k,2k) or range (1k:64k:x2)."
        ),
    ] = "2k",
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="CPU that holds the tables in its memory; the GPU has a cache.",
            autocompletion=completing.devices,
        ),
    ] = None,
    cache: Annotated[
        float,
        typer.Option(
            "--cache", metavar="SHARE", help="Share of the GPU's memory for the cache, 0 to 1."
        ),
    ] = 0.5,
    lru: Annotated[
        bool, typer.Option("--lru", help="Use an LRU cache in place of pinned popular rows.")
    ] = False,
    shards: Annotated[
        str | None,
        typer.Option(
            "--shards",
            metavar="N",
            help="Numbers of GPUs to shard the tables over, 2 or more: 2,4,8.",
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict embedding look-ups and recommenders: tables in CPU memory, in HBM, cached, sharded.

    \b
    perfmodel embedding -d xeon-gold-6242 -d a100-sxm4-80gb --tables 26 --rows 1M --lookups 214
    perfmodel embedding --model dlrm-dcnv2 -d a100-sxm4-80gb --host xeon-gold-6242 --cache 0.1
    perfmodel embedding --model dlrm-dcnv2 -d h100-sxm --shards 2,4,8 --batch 64k
    """
    chosen_format(format, output)
    if not 0.0 < cache <= 1.0:
        raise ProblemError(f"--cache {cache:g} is no share of the memory; give 0 to 1, such as 0.5")
    net = dlrm.load(model) if model is not None else None
    shape = {name: ranges.one(text, f"--{name}") for name, text in
             (("tables", tables), ("rows", rows), ("dim", dim), ("lookups", lookups))}  # fmt: skip
    devices = known.devices(device)
    cpu = load(host) if host is not None else None
    counts = [int(n) for n in ranges.parse(shards, "--shards")] if shards is not None else []
    records: list[dict[str, Any]] = []
    sizes = ranges.parse(batch, "--batch")
    for size in sizes:
        bags = _bags(net, int(size), shape, dtype, zipf)
        for target in devices:
            ways = _placements(bags, target, cpu, cache, counts, lru=lru)
            records += [_row(placed, bags, target, cpu, net) for placed in ways]
    emit(render.report(records, _title(net, bags, len(sizes))), format, output)


def _bags(
    net: Recommender | None, batch: int, shape: dict[str, int], dtype: str, exponent: float
) -> Bags:
    if net is not None:
        return net.bags(batch, exponent)
    tables = equal_tables(shape["tables"], shape["rows"], shape["lookups"])
    return Bags(batch, tables, shape["dim"], dtype, exponent)


def _placements(
    bags: Bags, device: Device, host: Device | None, cache: float, shards: list[int], *, lru: bool
) -> Iterator[Placed]:
    """Every requested placement; a CPU has only its own memory."""
    yield in_memory(bags, device)
    if device.kind == "cpu":
        return
    if host is not None:
        rows = cache * device.memory_bytes / bags.row_bytes
        yield cached(bags, device, host, rows, pinned=not lru)
    machines = systems.made_of(device.slug)
    system = max(machines, key=lambda m: m.node_devices) if machines else systems.of_device(device)
    for count in shards:
        yield sharded(bags, device, system, count)


def _row(
    placed: Placed, bags: Bags, device: Device, host: Device | None, net: Recommender | None
) -> dict[str, Any]:
    dense = net.dense_seconds(-(-bags.batch // placed.devices), device) if net is not None else None
    row = {key: value for key, value in asdict(placed).items() if not key.endswith("seconds")}
    pays = break_even_hit(bags, device, host) if host and placed.placement == "cached" else None
    return {
        "batch": bags.batch,
        **row,
        **in_micros(placed.seconds, placed.low_seconds, placed.high_seconds),
        "dense_us": None if dense is None else dense * 1e6,
        "samples_per_s": bags.batch / (placed.seconds + (dense or 0.0)),
        "break_even_hit": pays,
    }


def _title(net: Recommender | None, bags: Bags, batches: int) -> str:
    name = net.name if net is not None else "embedding bags"
    samples = f", {bags.batch:,} samples" if batches == 1 else ""
    return (
        f"{name}: {len(bags.tables)} tables of {binary(bags.table_bytes)} in all, "
        f"{bags.lookups / bags.batch:g} look-ups a sample, rows of {bags.row_bytes:g} B, "
        f"zipf {bags.exponent:g}{samples}"
    )
