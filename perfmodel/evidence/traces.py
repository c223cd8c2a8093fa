"""torch profiler's Chrome trace: the device time of every named range.

A range is a `record_function` or NVTX name that `Case.label` wrote. Its device time is the sum of
the kernels that ran inside it on the device's own timeline; in a trace without a device, the time
that the range took on the host.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.errors import TableError
from perfmodel.evidence.cases import is_label

_MICRO = 1e-6
Event = Mapping[str, Any]
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Range:
    """One instance of a named range: seconds, the kernels inside it and where it ran."""

    label: str
    seconds: float
    kernels: tuple[str, ...]
    on_device: bool
    device: str


def is_trace(text: str) -> bool:
    """Whether the text looks like a Chrome trace."""
    return text.lstrip()[:1] in ("{", "[") and '"ph"' in text


def ranges(text: str, where: str) -> list[Range]:
    """Every instance of a labelled range; raises `TableError` for another format, or if none."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise TableError(f"{where}: not a sound trace ({error}); export it again") from None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise TableError(f"{where}: no traceEvents; write it with export_chrome_trace")
    spans: list[Event] = [
        event for event in events if isinstance(event, dict) and event.get("ph") == "X"
    ]
    kernels = sorted((e for e in spans if e.get("cat") in _KERNELS), key=lambda e: float(e["ts"]))
    name = _device_name(document)
    found = _on_device(spans, kernels, name) if kernels else _on_host(spans)
    if not found:
        raise TableError(
            f"{where}: no range is named after a case; "
            "wrap each call in record_function(case.label())"
        )
    return found


def _device_name(document: Any) -> str:
    listed = document.get("deviceProperties") if isinstance(document, dict) else None
    return str(listed[0].get("name", "")) if listed else ""


def _labelled(spans: Iterable[Mapping[str, Any]], category: str) -> list[Event]:
    return [e for e in spans if e.get("cat") == category and is_label(str(e.get("name", "")))]


def _on_device(spans: list[Event], kernels: list[Event], device: str) -> list[Range]:
    """Kernels inside the range's span on the device, or launched inside its span on the host."""
    marked = _labelled(spans, "gpu_user_annotation")
    if marked:
        return [_range(mark, _inside(mark, kernels, "ts"), device) for mark in marked]
    launched = {
        e["args"]["correlation"]: float(e["ts"])
        for e in spans
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    placed = [
        {**kernel, "launched": launched[kernel["args"]["correlation"]]}
        for kernel in kernels
        if kernel.get("args", {}).get("correlation") in launched
    ]
    marked = _labelled(spans, "user_annotation")
    return [_range(mark, _inside(mark, placed, "launched"), device) for mark in marked]


def _inside(
    mark: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], when: str
) -> list[Event]:
    start = float(mark["ts"])
    end = start + float(mark.get("dur", 0))
    return [kernel for kernel in kernels if start <= float(kernel[when]) < end]


def _range(mark: Mapping[str, Any], kernels: list[Event], device: str) -> Range:
    seconds = sum(float(kernel.get("dur", 0)) for kernel in kernels) * _MICRO
    return Range(str(mark["name"]), seconds, tuple(str(k["name"]) for k in kernels), True, device)


def _on_host(spans: list[Event]) -> list[Range]:
    return [
        Range(str(mark["name"]), float(mark.get("dur", 0)) * _MICRO, (), False, "")
        for mark in _labelled(spans, "user_annotation")
    ]
