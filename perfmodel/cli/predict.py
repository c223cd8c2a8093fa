"""`perfmodel predict OPERATOR`: one case or a sweep, on one device or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import known
from perfmodel.cli.arguments import KERNEL, TimedKernels
from perfmodel.cli.cases import CHUNK, Cases
from perfmodel.cli.leftout import tell
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import Shown
from perfmodel.cli.predicted import Predicted, Way, one_by_one, predicted
from perfmodel.cli.progress import counted, waiting
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.operators import Operator
from perfmodel.render import PEOPLE, Report, predictions
from perfmodel.render.refused import Refused

# Limit on cases, over all devices and schedules: what is printed in 15 seconds.
MOST = 200_000
EXPLAINED = 64
"""Limit on the cases that the sentences under a table describe."""


@dataclass(frozen=True)
class Asked(TimedKernels):
    """What `predict` is asked for."""

    tile: Annotated[list[str] | None, FieldOption(KERNEL, "DIM=SIZE,...")] = None
    """Use this tile in place of the library's: m=128,n=256,k=64,warps=8,stages=3 for gemm,
    rows=128,keys=64 for attention; repeats."""
    terms: bool = False
    """Show every term, tile and wave (JSON and CSV always have them)."""
    compiled: bool = False
    """Take registers and shared memory from the bundled kernel's compiled binary."""

    def ways(self, operator: Operator) -> list[Way]:
        """The ways to predict. Raises `ProblemError` for options that do not combine."""
        for option, given in (("--mesh", self.mesh), ("--tile", self.tile)):
            if self.compiled and given:
                raise ProblemError(
                    f"--compiled works for one device; drop it, or {option}"
                    if option == "--mesh"
                    else f"--compiled uses the bundled kernels' tiles; drop it, or {option}"
                )
        rest, schedules = self.request(), self.schedules(operator)
        return [
            Way(
                spec,
                {"schedule": name, "implementation": kernel, "tile": dims, **rest},
                self.compiled,
            )
            for spec in self.devices()
            for kernel in self.implementations(operator)
            for name in schedules
            for dims in known.tiles(operator, self.tile) or [{}]
        ]


def predict(cases: Cases, asked: Asked, shown: Shown) -> None:
    """Predict all cases on all devices and show them."""
    ways = asked.ways(cases.operator)
    total = cases.count * len(ways)
    check_cases(total, MOST, "narrow a range, or write files with perfmodel sweep")
    shown.emit(*_reports(cases, ways, people=shown.form in PEOPLE, terms=asked.terms))


def _reports(cases: Cases, ways: Sequence[Way], *, people: bool, terms: bool) -> list[Report]:
    """The predictions. The table explains a few cases in words, and lists every term if `terms`."""
    total, varying, follows = cases.count * len(ways), cases.varying(), cases.follows
    tile = tuple(dict.fromkeys(name for way in ways for name in way.how["tile"]))
    few = total <= EXPLAINED
    with waiting("predicting"):
        first, refused = _first(cases if few else cases.first(), ways, few=few)
        examples = [p.row for p in first]
    if not few:
        examples = [_tile_row(row, cases.operator) for row in examples]

    def rows() -> Iterator[dict[str, Any]]:
        if few:
            return iter(examples)
        return _progress_rows((p.row for p in predicted(cases, ways)), total)

    with waiting("explaining"):
        why = _why(first, varying) if people and few else []
    tell(refused)
    if not (people and terms):
        return [predictions.report(rows(), examples, varying, follows, why, tile)]
    summary = replace(predictions.report(rows(), examples, varying, follows, (), tile), notes=())
    return [summary, predictions.terms(rows(), examples, varying, why)]


def _first(cases: Cases, ways: Sequence[Way], *, few: bool) -> tuple[list[Predicted], Refused]:
    """The cases predicted together; of `few` cases also those beside impossible ones."""
    try:
        return list(predicted(cases, ways)), ()
    except PerfmodelError:
        if not few or cases.count * len(ways) == 1:
            raise
        return one_by_one(cases, ways)


def _progress_rows(rows: Iterator[dict[str, Any]], total: int) -> Iterator[dict[str, Any]]:
    """The rows; on a terminal with a progress bar."""
    with counted("predicting") as tell:
        for done, row in enumerate(rows):
            if done % CHUNK == 0:
                tell(done, total)
            yield row


def _why(examples: Sequence[Predicted], varying: Sequence[str]) -> list[str]:
    """The sentences under the table; one for each case if there are few."""
    from perfmodel.analysis.why import why
    from perfmodel.render.why import ONE_BY_ONE, told

    rows = [p.row for p in examples]
    few = len(examples) <= ONE_BY_ONE
    reasons = [why(p.problem, p.way.device, p.prediction, **p.way.how) for p in examples if few]
    return told(rows, predictions.labels(rows, varying), reasons)


def _tile_row(row: dict[str, Any], operator: Operator) -> dict[str, Any]:
    """A row with every dimension of a tile, so that all rows have equal columns."""
    return {**row, "tile": {**dict.fromkeys(operator.searched), **row["tile"]}}


_EXAMPLES = {
    "attention": """\b
    perfmodel predict attention --device h100-sxm --batch 4 --heads 32 --kv-heads 8 \\
        --seq 4096 --head-dim 128 --causal --dtype bf16
    perfmodel predict attention -d a100 -d h100 --schedule standard,tiled --seq 512:16k:x2
    perfmodel predict attention -d h200-sxm --seq-q 1 --seq-kv 1k:128k:x2 --format csv
    perfmodel predict attention -d h100-sxm --seq-q 1 --seq-kv 32k --batch 8 --place kv=host
    """,
    "gemm": """\b
    perfmodel predict gemm --device a100-sxm4-80gb -m 4096 -n 4096 -k 4096 --dtype fp16
    perfmodel predict gemm -d h100-sxm -m 4k -k 8k --mesh k=2@nvlink
    perfmodel predict gemm -d h100-sxm --implementation triton --tile m=128,n=256,k=64,warps=8
    perfmodel predict gemm -d h100-sxm -m 1:64 -n 4096 -k 4096 --dtype fp8,bf16 -o sweep.csv
    """,
    "pointwise": """\b
    perfmodel predict pointwise -d h100-sxm --variant silu_mul --inputs 2 --rows 1k:16k:x2
    perfmodel predict pointwise -d a100,h100,mi300x --variant add,gelu --cols 8k
    """,
    "rows": """\b
    perfmodel predict {name} --device h100-sxm --rows 4096 --cols 1k:16k:x2
    perfmodel predict {name} -d a100,h100,mi300x --rows 4k --cols 8k --terms
    """,
    "declared": """\b
    perfmodel predict {name} --device h100-sxm --schedule auto,unfused
    perfmodel predict {name} -d a100,h100,mi300x --dtype bf16,fp8 --format csv
    """,
}


app = OperatorGroup(
    predict,
    _EXAMPLES,
    "Predict the time of an operator on a device, with every resource's share of it.",
)
