"""`perfmodel embedding`: look-ups in embedding tables in CPU memory, in HBM, cached or sharded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from perfmodel.cli import ranges
from perfmodel.cli.arguments import Devices, Host, Size, Sizes, TypeName
from perfmodel.cli.build import command
from perfmodel.embeddings import dlrm
from perfmodel.embeddings.bag import Bags, equal_tables
from perfmodel.embeddings.dlrm import Recommender
from perfmodel.embeddings.placement import cached, in_memory, sharded
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device, systems
from perfmodel.render import Report
from perfmodel.render import embeddings as render

_SAMPLES = ranges.read("2k", "")


@dataclass(frozen=True)
class Asked:
    """What `embedding` is asked for."""

    device: Devices
    """The devices."""
    model: Annotated[
        Recommender | None, FieldOption(metavar="NAME", names=dlrm.names, read=dlrm.load)
    ] = None
    """A recommender, with its tables and dense layers: dlrm-dcnv2."""
    tables: Size = 26
    """Number of tables, all of one size."""
    rows: Size = 2**20
    """Rows of each table."""
    dim: Size = 128
    """Elements of a row."""
    lookups: Size = 26
    """Look-ups of one sample, over all tables."""
    dtype: TypeName = "fp32"
    """Type of the rows' elements."""
    zipf: Annotated[float, FieldOption(metavar="A", least=None)] = 1.05
    """Exponent of Zipf's law for the popularity of rows; 0: all rows equal."""
    batch: Sizes = _SAMPLES
    """Samples: a size, list (1k,2k) or range (1k:64k:x2)."""
    host: Host = None
    """CPU that holds the tables in its memory; the GPU has a cache."""
    cache: Annotated[float, FieldOption(metavar="SHARE", least=None)] = 0.5
    """Share of the GPU's memory for the cache, 0 to 1."""
    lru: bool = False
    """Use an LRU cache in place of pinned popular rows."""
    shards: Annotated[ranges.Values | None, FieldOption()] = None
    """Numbers of GPUs to shard the tables over, 2 or more: 2,4,8."""

    def __post_init__(self) -> None:
        if not 0.0 < self.cache <= 1.0:
            raise ProblemError(
                f"--cache {self.cache:g} is no share of the memory; give 0 to 1, such as 0.5"
            )

    def bags(self, batch: int) -> Bags:
        """The look-ups of a batch."""
        if self.model is not None:
            return self.model.bags(batch, self.zipf)
        tables = equal_tables(self.tables, self.rows, self.lookups)
        return Bags(batch, tables, self.dim, self.dtype, self.zipf)

    def placements(self, bags: Bags, device: Device) -> Iterator[Tree]:
        """Every placement on a device; a CPU has only its own memory."""
        yield in_memory(bags, device)
        if device.kind == "cpu":
            return
        if self.host is not None:
            rows = self.cache * device.memory_bytes / bags.row_bytes
            yield cached(bags, device, self.host, rows, pinned=not self.lru)
        machines = systems.made_of(device.slug)
        system = max(machines, key=lambda m: m.node_devices) if machines else None
        for count in self.shards or ():
            yield sharded(bags, device, system or systems.of_device(device), count)


def embedding(asked: Asked) -> Report:
    """Predict embedding look-ups and recommenders: tables in CPU memory, in HBM, cached, sharded.

    \b
    perfmodel embedding -d xeon-gold-6242 -d a100-sxm4-80gb --tables 26 --rows 1M --lookups 214
    perfmodel embedding --model dlrm-dcnv2 -d a100-sxm4-80gb --host xeon-gold-6242 --cache 0.1
    perfmodel embedding --model dlrm-dcnv2 -d h100-sxm --shards 2,4,8 --batch 64k
    """
    batches: Sequence[Bags] = [asked.bags(size) for size in asked.batch]
    rows = [
        render.row(placed, bags, device, asked.host, asked.model)
        for bags in batches
        for device in asked.device
        for placed in asked.placements(bags, device)
    ]
    return render.report(rows, batches, asked.model)


app = command(embedding)
