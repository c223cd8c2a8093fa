"""What each fact of the libraries' kernels is worth on measured runs.

Each fact that a kernel states is set to its default in turn, nothing is fitted again, and the runs
are predicted anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from perfmodel.learned.active import corrected_by
from perfmodel.timing.libraries import files
from perfmodel.timing.libraries.facts import KernelFacts
from perfmodel.validation.compare import predict_table
from perfmodel.validation.scores import lines

if TYPE_CHECKING:
    import pandas as pd

# What a kernel is and what it multiplies, rather than a fact that could be left out.
IDENTITY = ("name", "library", "operator", "source", "about", "caller", "runs_on", "fallback",
            "dispatches", "instruction", "schedule", "tiles", "formats", "chain")  # fmt: skip
# Components whose facts are left out one by one.
PARTS = ("rows", "combine")
# Facts that change kernels other than those that state them: all runs of the operator are read.
ELSEWHERE = ("decoder", "where", "batched", "other_dims", "quantiser", "quantises",
             "gradient_kernel", "rows.group", "rows.integer_ops")  # fmt: skip


def without() -> Iterator[tuple[str, Mapping[str, KernelFacts]]]:
    """Each fact that some shipped kernel states, and these kernels with its default."""
    variants: dict[str, dict[str, KernelFacts]] = {}
    for name, kernel in files.shipped().items():
        for fact, default in stated(kernel, IDENTITY):
            if fact not in PARTS:
                variants.setdefault(fact, {})[name] = replace(kernel, **{fact: default})
        for part in PARTS:
            component: Any = getattr(kernel, part, None)
            for fact, default in stated(component, ()) if component is not None else ():
                changed: Any = {part: replace(component, **{fact: default})}
                plain = replace(kernel, **changed)
                variants.setdefault(f"{part}.{fact}", {})[name] = plain
    yield from sorted(variants.items())


def stated(holder: Any, apart: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Fields with a default that have another value, and that default."""
    for item in fields(holder):
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.name not in apart and default not in (MISSING, getattr(holder, item.name)):
            yield item.name, default


def errors(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """|ln(predicted / measured)| and the kernel of each run."""
    frame = predict_table(table)
    ratio = frame["predicted_us"].to_numpy(float) / table["measured_us"].to_numpy(float)
    return np.abs(np.log(ratio)), frame["kernel"].astype(str).to_numpy()


@corrected_by(None)
def fact_worth(table: pd.DataFrame) -> pd.DataFrame:
    """Median and 90th percentile of |ln(predicted / measured)| on the runs of the kernels that
    state a fact, with it and without, and the line of the summary that loses most."""
    import pandas as pd

    base, kernels = errors(table)
    names, operators, shipped = lines(table), table["op"].astype(str), files.shipped()
    records = []
    for fact, variants in without():
        mine = np.isin(kernels, list(variants))
        if fact in ELSEWHERE:
            served = {shipped[name].operator for name in variants}
            served |= {"gemm"} if "quantise" in served else set()
            mine = operators.isin(served).to_numpy()
        changed = base.copy()
        with patch.object(files, "shipped", lambda known={**shipped, **variants}: known):
            files.kernels.cache_clear()
            if mine.any():
                changed[mine] = errors(table[mine])[0]
        files.kernels.cache_clear()
        records.append(_record(fact, len(variants), base, changed, mine, names))
    return pd.DataFrame(records).set_index("fact")


def _record(
    fact: str, count: int, base: np.ndarray, changed: np.ndarray, mine: np.ndarray, names: Any
) -> dict[str, Any]:
    losses = {}
    for line in sorted(set(names[mine])):
        rows = names == line
        losses[line] = tuple(
            float(np.nanquantile(changed[rows], share) - np.nanquantile(base[rows], share))
            for share in (0.5, 0.9)
        )
    line = max(losses, key=lambda name: losses[name][0] + losses[name][1] / 8, default="")
    own = [np.nanquantile(each[mine], share) if mine.any() else np.nan
           for share in (0.5, 0.9) for each in (base, changed)]  # fmt: skip
    columns = ("median", "median without", "p90", "p90 without")
    return {
        "fact": fact, "kernels": count, "runs": int(mine.sum()),
        "moved": int((np.abs(changed - base) > 1e-9).sum()),
        **{name: f"{value:.4f}" for name, value in zip(columns, own, strict=True)},
        "line that loses most": line,
        **{name: f"{value:+.4f}" for name, value in
           zip(("its median", "its p90"), losses.get(line, (0.0, 0.0)), strict=True)},
    }  # fmt: skip
