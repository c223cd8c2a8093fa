"""`perfmodel predict OPERATOR`: one case or a sweep, on one device or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import single
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import known
from perfmodel.cli.arguments import KERNEL, TimedKernels
from perfmodel.cli.leftout import answered, tell
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import Shown
from perfmodel.cli.progress import progress, waiting
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.operators import Operator
from perfmodel.operators.grid import Grid
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render import PEOPLE, Report, predictions
from perfmodel.render.refused import Refused

MOST = 200_000
"""Limit on cases, over all devices and schedules: what is printed in 15 seconds."""
EXPLAINED = 64
"""Limit on the cases that the sentences under a table describe."""
CHUNK = 8192
"""Cases predicted in one call."""


@dataclass(frozen=True)
class Way:
    """A device, and the options of predictions on it."""

    device: Device
    """The device."""
    options: Mapping[str, Any]
    """Arguments of `predict_arrays` besides problem and device."""
    compiled: bool
    """Whether the nearest bundled kernel's binary replaces the assumed registers."""


@dataclass(frozen=True)
class Predicted:
    """One predicted case."""

    way: Way
    """Device and options."""
    problems: Problem
    """All problems of one call, as arrays."""
    place: int
    """The index of this case among them."""
    prediction: Prediction
    """The prediction."""

    @property
    def problem(self) -> Problem:
        """Its problem, with plain sizes."""
        return single(self.problems, self.place)


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
        if self.compiled and self.mesh:
            raise ProblemError("--compiled works for one device; drop it, or --mesh")
        if self.compiled and self.tile:
            raise ProblemError("--compiled uses the bundled kernels' tiles; drop it, or --tile")
        schedules, tiles = (
            self.schedules(operator),
            [known.tile(operator, t) for t in self.tile or ()],
        )
        return [
            Way(
                device,
                {"schedule": name, "implementation": kernel, "tile": tile, **self.request()},
                self.compiled,
            )
            for device in self.device
            for kernel in self.implementations(operator)
            for name in schedules
            for tile in tiles or [{}]
        ]


def predict(grid: Grid, asked: Asked, shown: Shown) -> list[Report]:
    """Predict all cases on all devices and show them."""
    ways = asked.ways(grid.operator)
    total = len(grid) * len(ways)
    check_cases(total, MOST, "narrow a range, or write files with perfmodel sweep")
    few = total <= EXPLAINED
    with waiting("predicting"):
        first, refused = _few(grid, ways) if few else (list(_predicted(grid.corners(), ways)), ())
    examples: list[dict[str, Any]] = [dict(each.prediction.as_dict()) for each in first]
    if not few:  # rows may differ in the dimensions of their tiles: each example has all of them
        dims = dict.fromkeys(grid.operator.searched)
        examples = [{**row, "tile": {**dims, **row["tile"]}} for row in examples]

    def rows() -> Iterator[Any]:
        return iter(examples) if few else _streamed(grid, ways, total)

    tile = tuple(dict.fromkeys(name for way in ways for name in way.options["tile"]))
    with waiting("explaining"):
        why = _why(first, examples, grid.varying) if few and shown.form in PEOPLE else []
    tell(refused)
    report = partial(predictions.report, rows(), examples, grid.varying, grid.follows)
    if not (asked.terms and shown.form in PEOPLE):
        return [report(why, tile)]
    terms = predictions.terms(rows(), examples, grid.varying, why)
    return [replace(report((), tile), notes=()), terms]


def _predicted(
    grid: Grid, ways: Sequence[Way], start: int = 0, stop: int | None = None
) -> Iterator[Predicted]:
    """A range of the cases in every way, in order; one chunk at a time.

    Raises what `predict_arrays` raises, and `ProblemError` for a case without meaning.
    """
    stop = len(grid) if stop is None else stop
    for way in ways:
        for first in range(start, stop, CHUNK):
            points = grid.decode(first, min(first + CHUNK, stop))
            cases: dict[int, Predicted] = {}
            for group in points.groups:
                if group.problem is None:
                    raise ProblemError(group.reason)
                answer = predict_arrays(group.problem, way.device, **way.options)
                for i, row in enumerate(group.rows.tolist()):
                    prediction = answer.one(i)
                    if way.compiled:
                        from perfmodel.proof.compiled import compiledeffect

                        problem = single(group.problem, i)
                        prediction = compiledeffect.compiled_prediction(
                            problem, way.device, prediction
                        )
                    cases[row] = Predicted(way, group.problem, i, prediction)
            yield from (cases[row] for row in range(len(points)))


def _few(grid: Grid, ways: Sequence[Way]) -> tuple[list[Predicted], Refused]:
    """The cases predicted together, or where some are impossible one by one, with the reasons."""
    try:
        return list(_predicted(grid, ways)), ()
    except PerfmodelError:
        if len(grid) * len(ways) == 1:
            raise

    def label(way: Way, i: int) -> str:
        case = grid.decode(i, i + 1)
        values = {name: grid.kinds[name][codes[0]] for name, codes in case.kinds.items()}
        values |= {name: column[0] for name, column in case.sizes.items()}
        words = (f"{name}={values[name]}" for name in grid.varying)
        kernel = way.options["implementation"] or way.options["schedule"]
        return " ".join([way.device.slug, kernel, *words])

    def one(way: Way, i: int) -> Predicted:
        return next(_predicted(grid, [way], i, i + 1))

    return answered((label(way, i), partial(one, way, i)) for way in ways for i in range(len(grid)))


def _streamed(grid: Grid, ways: Sequence[Way], total: int) -> Iterator[Any]:
    """The rows; on a terminal with a progress bar."""
    with progress("predicting") as tell_done:
        for done, each in enumerate(_predicted(grid, ways)):
            if done % CHUNK == 0:
                tell_done(done, total)
            yield each.prediction.as_dict()


def _why(cases: Sequence[Predicted], rows: Sequence[Any], varying: Sequence[str]) -> list[str]:
    """The sentences under the table; one for each case if there are few."""
    from perfmodel.analysis.why import why
    from perfmodel.render.why import ONE_BY_ONE, told

    few = len(cases) <= ONE_BY_ONE
    reasons = [why(p.problem, p.way.device, p.prediction, **p.way.options) for p in cases if few]
    return told(rows, predictions.labels(rows, varying), reasons)


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
    "": """\b
    perfmodel predict {name} --device h100-sxm{sizes}
    perfmodel predict {name} -d a100,h100,mi300x --dtype bf16,fp16 --format csv
    """,
}


app = OperatorGroup(
    predict,
    _EXAMPLES,
    "Predict the time of an operator on a device, with every resource's share of it.",
)
