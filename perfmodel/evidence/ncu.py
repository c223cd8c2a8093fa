"""Nsight Compute's CSV: one record of metrics in SI units for each kernel launch.

Read are the raw page (`--csv --page raw`: a column a metric, a row of units below the header) and
the long form of the details page (a row a metric). Lines that the profiler or the program print
around the table are skipped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfmodel.errors import TableError

# Units of the profiler to SI factors; percentages stay percentages.
_SECONDS = {
    "second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6,
    "nsecond": 1e-9, "ns": 1e-9,
}  # fmt: skip
_BYTES = {
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9,
}  # fmt: skip
UNITS = {**_SECONDS, **_BYTES}
_GROUPS = re.compile(r"[+-]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?")
_NAMES = ("Kernel Name", "Metric Name")
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
# Names of the details page for what the raw page calls otherwise.
_SPOKEN = {
    "Duration": "gpu__time_duration.sum",
    "DRAM Throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM Frequency": "sm__cycles_elapsed.avg.per_second",
}


@dataclass(frozen=True)
class Launch:
    """One profiled launch: its order, kernel, device, range names and metrics in SI units."""

    order: int
    kernel: str
    device: str
    ranges: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)


def launches(text: str, where: str) -> list[Launch]:
    """Every launch in the order of the file; raises `TableError` for another format."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        raise TableError(
            f'{where}: not Nsight Compute\'s CSV (no line with a "Kernel Name" column); '
            "write it with ncu --csv --page raw"
        )
    body = [line for line in lines[start:] if line and not line.startswith("==")]
    try:
        header, *rows = list(csv.reader(body, strict=True))
    except csv.Error as error:
        raise TableError(f"{where}: not sound CSV ({error}); export it again") from None
    rows = [row for row in rows if len(row) == len(header)]
    found = _long(header, rows, where) if set(_LONG) <= set(header) else _raw(header, rows, where)
    if not found:
        raise TableError(f"{where}: no kernel was profiled; was anything launched on the device?")
    return found


def number(text: str) -> float | None:
    """A number as the profiler writes it: 1,234.5 and (other locales) 1.234,5 or 9,00."""
    text = text.strip().strip('"')
    if _GROUPS.fullmatch(text):
        text = re.sub(r"(?<=\d)[,'\u00a0\u202f ](?=\d{3})", "", text)
    elif "," in text:
        text = text.replace(".", "").replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def _is_header(line: str) -> bool:
    cells = next(csv.reader([line]), [])
    return "Kernel Name" in cells and len(cells) > 2


def _raw(header: list[str], rows: list[list[str]], where: str) -> list[Launch]:
    """A row a launch; the first row holds the units."""
    if not rows:
        raise TableError(f"{where}: the header stands alone; the file may be cut short")
    units = dict.fromkeys(header, "")
    if not rows[0][header.index("Kernel Name")].strip():
        units = dict(zip(header, rows[0], strict=True))
        rows = rows[1:]
    found = []
    for order, row in enumerate(rows):
        cells = dict(zip(header, row, strict=True))
        metrics = _metrics((name, units[name], cells[name]) for name in header if "__" in name)
        found.append(_launch(order, cells, metrics))
    return found


def _long(header: list[str], rows: list[list[str]], where: str) -> list[Launch]:
    """A row a metric: launches are told apart by ID, or by kernel name where there is none."""
    by: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        by.setdefault((cells.get("ID", ""), cells["Kernel Name"]), []).append(cells)
    found = []
    for order, group in enumerate(by.values()):
        metrics = _metrics(
            (_SPOKEN.get(c["Metric Name"], c["Metric Name"]), c["Metric Unit"], c["Metric Value"])
            for c in group
        )
        found.append(_launch(order, group[0], metrics))
    return found


def _launch(order: int, cells: Mapping[str, str], metrics: dict[str, float]) -> Launch:
    ranges = tuple(text.strip() for name, text in cells.items() if "Range" in name and text.strip())
    return Launch(order, cells["Kernel Name"], cells.get("Device", ""), ranges, metrics)


def _metrics(cells: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """Metrics that hold a number, in SI units."""
    found = {}
    for name, unit, text in cells:
        value = number(text)
        if value is not None:
            found[name] = value * UNITS.get(unit.strip(), 1.0)
    return found


_REFUSED = re.compile(r"Failed to find metric (\S+)")


def complaints(said: str) -> list[str]:
    """What the profiler says went wrong: its `==ERROR==` lines, without the mark."""
    mark = "==ERROR=="
    lines = (line.strip() for line in said.splitlines())
    return [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def accepted_metrics(metrics: Iterable[str], said: str) -> list[str]:
    """The metrics without those that the profiler said it does not know."""
    refused = {name for line in complaints(said) for name in _REFUSED.findall(line)}
    return [name for name in metrics if name not in refused]
