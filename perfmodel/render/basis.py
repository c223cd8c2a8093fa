"""Notes under a table of predictions: exchanges, what is known, what is assumed.

A note that holds for only some of the devices names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from perfmodel.render.report import Row

# {} is the kind of runs, as attention: runs of another kind may be in the fit.
_DEVICE: Mapping[str, str] = {
    "fitted": "its runs are in the fit",
    "sibling": "{} runs of its architecture are in the fit, none of its own",
    "calibrated": "no {} runs of its architecture; its bandwidths are measured",
    "generation": "no {} runs of its architecture; by its data sheet",
    "none": "nothing of this kind is in the fit",
}
_IMPLEMENTATION: Mapping[str, str] = {
    "fitted": "its runs are in the fit",
    "named": "its facts, no runs",
    "assumed": "a good library's kernel; --implementation names one",
}
_OF_NO_LIBRARY = ("mapped", "", None)
_HARNESS: Mapping[str, str] = {
    "known": "",
    "unseen": "no runs of that framework by it",
    "assumed": "device time is taken",
}


def basis(rows: Sequence[Row]) -> list[str]:
    """The notes, each once."""
    return [
        *(f"exchange: {item}" for item in _exchanges(rows)),
        *_notes("known", rows, lambda row: [_knowledge(row)]),
        *_notes("assumed", rows, lambda row: row["assumptions"]),
    ]


def _exchanges(rows: Sequence[Row]) -> Iterable[str]:
    return dict.fromkeys(
        f"{item['kind']} of {item['tensor']} over {item['level']}, {item['ranks']} devices"
        for row in rows
        for item in row["exchanges"]
    )


def _knowledge(row: Row) -> str:
    """How much is known of device, implementation and harness, and what each word means."""
    glosses = {"device": _DEVICE, "implementation": _IMPLEMENTATION, "harness": _HARNESS}
    parts = []
    for axis, level in row["known"].items():
        gloss = glosses[axis].get(level, "")
        if axis == "implementation" and row.get("implementation") in _OF_NO_LIBRARY:
            gloss = "no library's is known"
        gloss = gloss.format(_kind(row))
        parts.append(f"{axis} {level}" + (f" ({gloss})" if gloss else ""))
    return ", ".join(parts)


def _kind(row: Row) -> str:
    """The kind of runs that a fit must have to know the device: the operator, of products also the
    type."""
    name = str(row.get("algorithm") or "such")
    dtype = row.get("problem", {}).get("dtype", "")
    return f"{dtype} {name}" if name == "gemm" else name


def _notes(label: str, rows: Sequence[Row], texts: Callable[[Row], Iterable[str]]) -> Iterator[str]:
    """A note for each distinct text, with the devices unless it holds for all."""
    devices = {row["device"] for row in rows}
    by_text: dict[str, dict[str, None]] = {}
    for row in rows:
        for item in texts(row):
            by_text.setdefault(item, {})[row["device"]] = None
    for item, names in by_text.items():
        suffix = "" if len(names) == len(devices) else f" of {', '.join(names)}"
        yield f"{label}{suffix}: {item}"
