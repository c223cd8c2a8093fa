"""Kinds of results that are declared: what names a row, which numbers are drawn and told of.

The summary tells of the best row, or of the best of each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perfmodel.quantities import header_of, kind_of, shown
from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import (
    Document,
    assumptions,
    described,
    first,
    kind,
    rows_of,
)
from perfmodel.render.html.sections import Bar, Bars, Dots, Rows, Section, table

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Declared:
    """A section with a table of the rows, and a chart of them."""

    title: str
    """Its heading."""
    named: Sequence[str]
    """Keys that name a row."""
    told: Sequence[str]
    """Keys of what the summary tells of the best row."""
    best: str
    """Key of which the best row has the most, or behind a minus the least."""
    apart: Sequence[str] = ()
    """Keys of groups that have a best row each."""
    dots: Dots | None = None
    """A mark for each row; filters are those keys of it that distinguish rows."""
    bars: Sequence[tuple[str, str, Mapping[str, str]]] = ()
    """Bars of each row: title, kind of the lengths, and key of each length by its name."""
    first: Sequence[str] = ()
    """Keys of the first columns."""
    left_out: str = ""
    """Pattern of keys without a column."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headings that do not follow from the key."""

    def __call__(self, documents: Sequence[Document]) -> Iterator[Section]:
        """The section; rows without the key of the best are a table of their own."""
        key = self.best.removeprefix("-")
        rows = [row for row in rows_of(documents) if row.get(key) is not None]
        rest = [row for row in rows_of(documents) if row.get(key) is None]
        if rest and (not rows or not self.bars):
            yield table(self.title, rest)
        if not rows:
            return
        parts: list[Bars | Dots | Rows] = [
            Bars(title, unit, {"": [self._bar(row, keys) for row in rows]}, ranked=False)
            for title, unit, keys in self.bars
        ]
        if self.dots is not None:
            keys = telling(rows, self.dots.filters)
            name = [key for key in self.dots.name if key in rows[0]]
            parts.append(replace(self.dots, filters=keys, by=keys, name=name))
        every = [*rows, *(rest if self.bars else [])]
        yield Section(
            self.title,
            every,
            columns(every, self.first, self.left_out, self.headers),
            [*parts, Rows(self.title)],
            [*first(self._sentences(rows), "groups")],
            assumptions=assumptions(documents),
        )

    def _bar(self, row: Row, keys: Mapping[str, str]) -> Bar:
        lengths = {name: row[key] or 0.0 for name, key in keys.items()}
        ends = (row.get("low_us"), row.get("high_us")) if len(keys) == 1 else (None, None)
        note = "does not fit" if row.get("fits") is False else ""
        return Bar(described(row, self.named), lengths, *ends, note=note)

    def _sentences(self, rows: Sequence[Row]) -> Iterator[str]:
        """What the best of each group is, of rows that fit if some do."""
        key, sign = self.best.removeprefix("-"), -1 if self.best.startswith("-") else 1
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(described(row, self.apart), []).append(row)
        for name, group in groups.items():
            fitting = [row for row in group if row.get("fits") is not False] or group
            best = max(fitting, key=lambda row: sign * row[key])
            superlative = f"the {'most' if sign > 0 else 'least'} {header_of(key)}"
            numbers = ", ".join(
                f"{header_of(each)} {shown(best.get(each), kind_of(each))}" for each in self.told
            )
            label = ", ".join(
                filter(
                    None,
                    (name, described(best, [key for key in self.named if key not in self.apart])),
                )
            )
            yield f"{self.title}, {superlative}: {label}: {numbers}."


_SERIES = ("collective", "library", "system", "device", "problem_ranks", "problem_dtype")
_LATENCY = {"time_us": ("low_us", "high_us")}
_PLACES = {place: f"{place}_bytes" for place in ("device", "host", "disk")}
_KINDS = {
    "collectives": (
        ("collective", "bus_gb_per_s", "protocol", "time_us", "device"),
        Declared(
            "Collectives",
            ("problem_bytes",),
            ("time_us", "bus_gb_per_s", "algorithm", "limiter"),
            "bus_gb_per_s",
            apart=_SERIES,
            dots=Dots(
                "Time and bandwidth over the size",
                ["problem_bytes", "problem_ranks"],
                ["bus_gb_per_s", "time_us"],
                [*_SERIES, "problem_bytes"],
                filters=[*_SERIES, "algorithm", "protocol", "limiter"],
                ranges=_LATENCY,
                joined=[*_SERIES, "problem_bytes"],
            ),
            first=[*_SERIES, "problem_bytes"],
            left_out="^known",
            headers={"problem_bytes": "size", "problem_ranks": "ranks", "problem_dtype": "type"},
        ),
    ),
    "ridges": (
        ("ridge_flop_per_byte", "parallelism", "threshold"),
        Declared(
            "Links as roofs",
            (),
            ("bound", "threshold", "quantity"),
            "-threshold",
            apart=("system", "parallelism", "link"),
        ),
    ),
    "formats": (
        ("format", "bits"),
        Declared(
            "Weight formats",
            ("format",),
            ("time_us", "weight_bytes", "limiter"),
            "-time_us",
            apart=("device", "batch"),
            dots=Dots(
                "A decoding step by format",
                ["weight_bytes", "batch", "bits"],
                ["tokens_per_s", "time_us", "gain"],
                ["format", "device", "batch"],
                log="y",
                filters=["format", "device", "batch"],
                ranges=_LATENCY,
                fits="fits",
            ),
            first=("device", "format", "bits", "batch", "time_us", "low_us", "high_us"),
        ),
    ),
    "policies": (
        ("prefill_s", "decode_s", "decode_limiter"),
        Declared(
            "Offload policies",
            ("blocks", "part", "weights_device", "cache_device"),
            ("tokens_per_s", "prefill_s", "decode_s", "decode_limiter"),
            "tokens_per_s",
            bars=[
                ("Time", "seconds", {"prefill": "prefill_s", "decode": "decode_s"}),
                ("Memory by place", "binary", _PLACES),
            ],
        ),
    ),
    "recompute": (
        ("split", "sent_us", "time_share"),
        Declared(
            "Caches computed anew",
            ("device", "batch", "context"),
            ("share", "time_share"),
            "-time_share",
            dots=Dots(
                "Over the context",
                ["context", "batch"],
                ["time_us", "sent_us"],
                ["device", "context", "batch"],
                filters=["device", "batch"],
                joined=["device", "context", "batch"],
            ),
        ),
    ),
    "streaming": (
        ("link_us", "work_us", "hiding_batch"),
        Declared(
            "Streamed weights",
            ("device", "batch", "context"),
            ("tokens_per_s", "limiter", "hiding_batch"),
            "tokens_per_s",
            dots=Dots(
                "Over the batch",
                ["batch", "context"],
                ["tokens_per_s", "time_us"],
                ["device", "batch", "context"],
                filters=["device", "context"],
                joined=["device", "batch", "context"],
            ),
        ),
    ),
    "layers": (
        ("on_device", "on_host", "time_us"),
        Declared(
            "Layers on the device",
            ("device", "on_device", "on_host"),
            ("tokens_per_s", "time_us"),
            "tokens_per_s",
            dots=Dots(
                "Over the layers on the device",
                ["on_device"],
                ["time_us", "tokens_per_s"],
                ["device", "on_device"],
                log="",
                filters=["device"],
                joined=["device", "on_device"],
                fits="fits",
            ),
        ),
    ),
    "machines": (
        ("joules_per_token", "streamed_us", "hiding_batch"),
        Declared(
            "Devices that hold the network",
            ("devices", "device"),
            ("time_us", "joules_per_token", "limiter"),
            "-time_us",
            apart=("device",),
            bars=[("A decoding step", "time", {"step": "time_us"})],
        ),
    ),
    "placements": (
        ("placement", "dense_us", "samples_per_s"),
        Declared(
            "Embedding tables",
            ("device", "devices", "placement", "batch"),
            ("samples_per_s", "limiter"),
            "samples_per_s",
            bars=[("A batch", "time", {"look-ups": "time_us", "dense": "dense_us"})],
        ),
    ),
}
for _name, (_keys, _sections) in _KINDS.items():
    kind(_name, _keys)(_sections)
