"""The bundled record: what published runs teach beyond the model, in record.npz.

`head` is JSON: where it is from, all sets of words, and each group without its runs; `numbers`,
`words` (which set) and `ratios` are those of all groups, one after another. `python -m
perfmodel.fitting.record` makes it. It belongs to the model as it is: a change that moves
predictions needs a new one.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.entries import written
from perfmodel.learned.groups import Group, Learned

PATH = Path(__file__).with_name("record.npz")
"""The file that comes with perfmodel."""
_RUNS = ("numbers", "words", "ratios")


@lru_cache(maxsize=1)
def shipped() -> Learned:
    """The corrections of the record that comes with perfmodel."""
    with np.load(PATH) as file:
        head = json.loads(file["head"].tobytes())
        numbers, words, ratios = (file[name] for name in _RUNS)
    sets = [tuple(each) for each in head["sets"]]
    groups, at, first = [], 0, 0
    for entry in head["groups"]:
        names, runs = entry.pop("names"), entry.pop("runs")
        columns = numbers[at : at + len(names) * runs].reshape(len(names), runs)
        rows = slice(first, first + runs)
        at, first = at + columns.size, first + runs
        lists = {name: tuple(entry[name]) for name in ("kernels", "devices", "shared")}
        groups.append(
            Group(
                **entry | lists,
                numbers=dict(zip(names, map(tuple, columns.tolist()), strict=True)),
                words=tuple(sets[i] for i in words[rows].tolist()),
                ratios=tuple(ratios[rows].tolist()),
            )
        )
    return Learned(head["learned_from"], head["version"], tuple(groups))


def packed(learned: Learned) -> dict[str, np.ndarray]:
    """The arrays of a file with these corrections."""
    sets: dict[tuple[str, ...], int] = {}
    entries, numbers, words, ratios = [], [], [], []
    for group in learned.groups:
        entry: dict[str, Any] = {"shared": (), **written(group)}
        runs = {name: entry.pop(name) for name in _RUNS}
        entries.append(entry | {"names": list(group.numbers), "runs": len(group.ratios)})
        numbers += runs["numbers"].values()
        words += [sets.setdefault(tuple(each), len(sets)) for each in group.words]
        ratios += runs["ratios"]
    head = {
        "learned_from": learned.learned_from, "version": learned.version,
        "sets": list(sets), "groups": entries,
    }  # fmt: skip
    return {
        "head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
        "numbers": np.concatenate([np.asarray(each, dtype=np.float32) for each in numbers]),
        "words": np.asarray(words, dtype=np.uint16),
        "ratios": np.asarray(ratios, dtype=np.float32),
    }
