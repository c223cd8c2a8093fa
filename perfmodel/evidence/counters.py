"""Hardware counters as measured runs: bytes per level and unit utilisation beside the time.

    rows, said = import_counters("report.csv", device="h200-sxm")

Cases are named by a range (`Case.label`, through NVTX or record_function) or by a table of cases in
the order of their launches. Launches of one case add up; repetitions of a case give the median.
`traffic_report` then holds predicted bytes against counted ones.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError
from perfmodel.evidence import ncu, records, traces
from perfmodel.evidence.cases import Case, from_label, implementation_of, is_label

if TYPE_CHECKING:
    import pandas as pd

BYTES = ("hbm_bytes_measured", "l2_bytes_measured", "shared_bytes_measured")
PIPES = ("tensor_pipe_pct", "xu_pipe_pct", "fma_pipe_pct")
ADDED = (*BYTES, *PIPES, "kernels", "instances", "reason")
COLUMNS = (*records.COLUMNS, *ADDED)
PREDICTED = {
    "hbm": ("predicted_hbm_bytes", "hbm_bytes_measured"),
    "l2": ("predicted_l2_bytes", "l2_bytes_measured"),
    "shared": ("predicted_shared_bytes", "shared_bytes_measured"),
}
"""Level → the column of predicted bytes and the column of counted ones."""

_SECTOR, _WAVEFRONT = 32.0, 128.0
DURATION = "gpu__time_duration.sum"
# Each quantity by the metrics that give it, the best first: (metrics to add up, factor).
_COUNTED: Mapping[str, tuple[tuple[tuple[str, ...], float], ...]] = {
    "hbm_bytes_measured": (
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1.0),
        (("dram__bytes.sum",), 1.0),
        (("dram__sectors_read.sum", "dram__sectors_write.sum"), _SECTOR),
    ),
    "l2_bytes_measured": (
        (("lts__t_sectors_srcunit_tex.sum",), _SECTOR),
        (("lts__t_bytes_srcunit_tex.sum",), 1.0),
        (("lts__t_bytes.sum",), 1.0),
        (("lts__t_sectors.sum",), _SECTOR),
    ),
    "shared_bytes_measured": (
        (("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",), _WAVEFRONT),
        (
            (
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            ),
            _WAVEFRONT,
        ),
    ),
}
_PIPE_WORDS = {
    "tensor_pipe_pct": "pipe_tensor",
    "xu_pipe_pct": "pipe_xu",
    "fma_pipe_pct": "pipe_fma",
}
_SHARES = ("pct_of_peak_sustained_active", "pct_of_peak_sustained_elapsed")

NCU_METRICS = (
    DURATION,
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_bytes.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "sm__inst_executed_pipe_tensor.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
)
"""What to ask the profiler for; docs/counters.md has the whole line."""


@dataclass(frozen=True)
class _Counted:
    """One instance of a case: seconds, quantities and how many launches it took."""

    seconds: float
    values: Mapping[str, float]
    kernels: int


@dataclass(frozen=True)
class _Named:
    """What a case was called: its columns, and the implementation."""

    case: Case
    implementation: str


def import_counters(
    path: str | Path, *, device: str, cases: str | Path | None = None
) -> tuple[list[dict[str, str]], list[str]]:
    """Rows of the measured-run table, and lines about what was left out.

    Raises `TableError`, one line, for a file of another format or one whose cases have no name.
    """
    where = str(path)
    text = _text(path)
    if traces.is_trace(text):
        return _from_trace(text, where, device)
    launches = ncu.launches(text, where)
    if cases is not None:
        return _from_order(launches, _listed_cases(cases), where, str(cases), device)
    return _from_ranges(launches, where, device)


def _text(path: str | Path) -> str:
    try:
        data = Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            import gzip

            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TableError(f"{path}: cannot be read: {reason}; check the path") from None
    except UnicodeDecodeError:
        raise TableError(
            f"{path}: binary data; give Nsight Compute's CSV (ncu --import report.ncu-rep --csv "
            "--page raw) or torch profiler's trace"
        ) from None


# ---- Where cases get their names -----------------------------------------------------------------


def _from_ranges(
    launches: Sequence[ncu.Launch], where: str, device: str
) -> tuple[list[dict[str, str]], list[str]]:
    """Launches grouped by the range that they ran in; a repeated first kernel starts a new one."""
    groups: dict[str, list[ncu.Launch]] = {}
    unnamed = 0
    for launch in launches:
        label = _label(launch)
        if label is None:
            unnamed += 1
        else:
            groups.setdefault(label, []).append(launch)
    if not groups:
        raise TableError(
            f"{where}: none of {len(launches)} launches ran in a range named after a case; "
            "profile with --nvtx and Case.label(), or give --cases FILE"
        )
    said = [f"{where}: {unnamed} launches without a case's range left out"] if unnamed else []
    rows = []
    for label, group in groups.items():
        instances = [_sum(instance) for instance in _instances(group)]
        ran = implementation_of(label) or f"ncu:{_short(group[0].kernel)}"
        named = _Named(from_label(label), ran)
        rows.append(_row(named, instances, device))
    return rows, said


def _label(launch: ncu.Launch) -> str | None:
    """The case's label among a launch's ranges, which the profiler wraps in other fields."""
    for text in (*launch.ranges, launch.kernel):
        for part in text.replace('"', " ").replace(":", " ").split():
            if is_label(part):
                return part
    return None


def _instances(group: Sequence[ncu.Launch]) -> list[list[ncu.Launch]]:
    first = group[0].kernel
    found: list[list[ncu.Launch]] = []
    for launch in group:
        if launch.kernel == first or not found:
            found.append([])
        found[-1].append(launch)
    return found


def _from_order(
    launches: Sequence[ncu.Launch],
    listed: Sequence[Mapping[str, str]],
    where: str,
    cases: str,
    device: str,
) -> tuple[list[dict[str, str]], list[str]]:
    """Launches in the order of a table of cases, `kernels` of them each (1 where it is empty)."""
    counts = [_launch_count(row, cases) for row in listed]
    if sum(counts) != len(launches):
        raise TableError(
            f"{cases}: asks for {sum(counts)} launches, {where} has {len(launches)}; "
            "set the column 'kernels' to how many launches each case takes"
        )
    rows = []
    place = 0
    for row, count in zip(listed, counts, strict=True):
        group = launches[place : place + count]
        place += count
        implementation = row.get("implementation") or f"ncu:{_short(group[0].kernel)}"
        rows.append(_row(_Named(_case(row, cases), implementation), [_sum(group)], device))
    return rows, []


def _launch_count(row: Mapping[str, str], where: str) -> int:
    text = row.get("kernels") or "1"
    if not text.isdigit() or int(text) < 1:
        raise TableError(f"{where}: kernels is {text!r}, not a number of launches")
    return int(text)


def _listed_cases(path: str | Path) -> list[dict[str, str]]:
    found = list(csv.DictReader(io.StringIO(_text(path))))
    if not found or "op" not in found[0] or "dtype" not in found[0]:
        raise TableError(f"{path}: not a table of cases; it needs the columns op and dtype")
    return [{str(name): text or "" for name, text in row.items()} for row in found]


def _case(row: Mapping[str, str], where: str) -> Case:
    """The case of a row of a table."""
    cells = [
        f"{item.name}={row[item.name].removesuffix('.0')}"
        for item in fields(Case)
        if row.get(item.name)
    ]
    try:
        return from_label("|".join(("perfmodel", *cells)))
    except Exception as error:
        raise TableError(f"{where}: {error}") from None


def _from_trace(text: str, where: str, device: str) -> tuple[list[dict[str, str]], list[str]]:
    groups: dict[str, list[traces.Range]] = {}
    for each in traces.ranges(text, where):
        groups.setdefault(each.label, []).append(each)
    rows, said = [], []
    for label, group in groups.items():
        timed = [each for each in group if each.seconds > 0]
        if not timed:
            said.append(f"{where}: no kernel ran inside {label}; left out")
            continue
        kernel = timed[0].kernels[0] if timed[0].kernels else "host"
        ran = implementation_of(label) or f"profiler:{_short(kernel)}"
        instances = [_Counted(each.seconds, {}, len(each.kernels)) for each in timed]
        rows.append(_row(_Named(from_label(label), ran), instances, device))
    if not rows:
        raise TableError(f"{where}: no range holds a kernel; profile the device as well")
    return rows, said


# ---- What was counted ----------------------------------------------------------------------------


def _sum(group: Iterable[ncu.Launch]) -> _Counted:
    """Launches of one instance: bytes and times add up, utilisation is weighted by time."""
    listed = list(group)
    times = [launch.metrics.get(DURATION, 0.0) for launch in listed]
    values: dict[str, float] = {}
    for name in BYTES:
        parts = [_counted(name, launch.metrics) for launch in listed]
        known = [part for part in parts if part is not None]
        if known and len(known) == len(parts):
            values[name] = sum(known)
    for name in PIPES:
        shares = [_utilisation(name, launch.metrics) for launch in listed]
        known = [share for share in shares if share is not None]
        if known and len(known) == len(shares):
            weights = times if sum(times) else [1.0] * len(times)
            values[name] = sum(s * t for s, t in zip(known, weights, strict=True)) / sum(weights)
    return _Counted(sum(times), values, len(listed))


def _counted(name: str, metrics: Mapping[str, float]) -> float | None:
    for wanted, factor in _COUNTED[name]:
        if all(metric in metrics for metric in wanted):
            return factor * sum(metrics[metric] for metric in wanted)
    return None


def _utilisation(name: str, metrics: Mapping[str, float]) -> float | None:
    """The busiest of the unit's pipes in percent: of active cycles, else of elapsed ones."""
    for share in _SHARES:
        found = [
            value
            for metric, value in metrics.items()
            if _PIPE_WORDS[name] in metric and metric.endswith(share)
        ]
        if found:
            return max(found)
    return None


def _short(kernel: str) -> str:
    """A kernel's name without its types and arguments."""
    return kernel.split("<")[0].split("(")[0].split("::")[-1].split()[-1][:60] or "kernel"


def _row(named: _Named, instances: Sequence[_Counted], device: str) -> dict[str, str]:
    seconds = median(each.seconds for each in instances)
    row = dict.fromkeys(COLUMNS, "") | named.case.columns()
    row |= {
        "source": "perfmodel counters import",
        "device": device,
        "implementation": named.implementation,
        "harness": "profiler",
        "measured_us": f"{seconds * 1e6:.6g}" if seconds > 0 else "",
        "flag": "" if seconds > 0 else "failed",
        "reason": "" if seconds > 0 else f"no {DURATION} in the file",
        "kernels": str(instances[0].kernels),
        "instances": str(len(instances)),
    }
    for name in (*BYTES, *PIPES):
        values = [each.values[name] for each in instances if name in each.values]
        if values:
            row[name] = f"{median(values):.6g}"
    return row


def write(rows: Sequence[Mapping[str, str]], path: str | Path) -> None:
    """Write rows as a table; .csv, .csv.gz or .parquet."""
    import pandas as pd

    records.write_table(pd.DataFrame(rows, columns=list(COLUMNS)), path)


# ---- Traffic against predictions -----------------------------------------------------------------


def traffic_report(table: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Errors of predicted bytes at each level that was counted: a line per level and group.

    `table` has the columns of `PREDICTED`. n, MAPE, median |ln|, and bias (geometric mean of
    predicted over counted); empty where nothing was both counted and predicted.
    """
    import numpy as np
    import pandas as pd

    lines: list[dict[str, Any]] = []
    for level, (predicted, counted) in PREDICTED.items():
        if predicted not in table.columns or counted not in table.columns:
            continue
        values = table.assign(
            _p=pd.to_numeric(table[predicted], errors="coerce"),
            _c=pd.to_numeric(table[counted], errors="coerce"),
        )
        values = values[(values["_p"] > 0) & (values["_c"] > 0)]
        for key, group in _groups(values, by):
            logs = np.log(group["_p"] / group["_c"])
            lines.append(
                {
                    "level": level,
                    **key,
                    "n": len(group),
                    "mape": float((group["_p"] / group["_c"] - 1).abs().mean()),
                    "median_abs_ln": float(logs.abs().median()),
                    "p90_abs_ln": float(logs.abs().quantile(0.9)),
                    "bias": float(np.exp(logs.mean())),
                }
            )
    names = ["level", *by, "n", "mape", "median_abs_ln", "p90_abs_ln", "bias"]
    return pd.DataFrame(lines, columns=names)


def _groups(table: pd.DataFrame, by: Sequence[str]) -> Iterable[tuple[dict[str, Any], Any]]:
    if table.empty:
        return
    if by:
        for key, group in table.groupby(list(by), sort=True, dropna=False):
            yield dict(zip(by, key, strict=True)), group
    yield dict.fromkeys(by, "all"), table
