"""Times of the kernels on each device by the time model; each distinct problem is predicted
once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Problem, Rowwise
from perfmodel.hardware import Device
from perfmodel.predict import predict_arrays


@dataclass(frozen=True)
class Clock:
    """Predictions on one device, cached."""

    device: Device
    """Where the kernels run."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Further options for `perfmodel.predict`: implementation, harness …"""
    known: dict[Problem, np.ndarray] = field(default_factory=dict, compare=False)
    """Cache of times."""

    def together(self, problems: Sequence[Attention]) -> np.ndarray:
        """Attention problems one after another: predicted, low and high seconds, shape (3,)."""
        self._predict(problems)
        return sum((self.known[each] for each in problems), start=np.zeros(3))

    def merging(self, rows: int, cols: int, dtype: str) -> np.ndarray:
        """Adding a result of `rows` × `cols` in `dtype` to an fp32 accumulator; seconds, shape
        (3,)."""
        if not rows:
            return np.zeros(3)
        merge = Rowwise(
            "pointwise", rows, cols, "fp32", variant="add", also_inputs=1, also_dtype=dtype
        )
        if merge not in self.known:
            self.known[merge] = _times(predict_arrays(merge, self.device))[0]
        return self.known[merge]

    def _predict(self, problems: Iterable[Attention]) -> None:
        """Predict the problems not yet cached; problems that differ only in lengths share one
        call."""
        groups: dict[Attention, list[Attention]] = defaultdict(list)
        for problem in dict.fromkeys(problems):
            if problem not in self.known:
                groups[replace(problem, seq_q=1, seq_kv=1)].append(problem)
        for group in groups.values():
            queries, keys = (np.array([getattr(x, n) for x in group]) for n in ("seq_q", "seq_kv"))
            lengths = replace(group[0], seq_q=queries, seq_kv=keys)
            predictions = predict_arrays(lengths, self.device, **self.asked)
            self.known.update(zip(group, _times(predictions), strict=True))


def _times(times: Any) -> np.ndarray:
    """Predicted, low and high seconds, shape (n, 3)."""
    return np.stack([times.seconds, times.low_seconds, times.high_seconds], axis=-1)
