"""All checks that need no GPU, as tables: `python -m perfmodel.proof.replay.suite`.

It runs every kernel on every case (requested against counted bytes, and the result against its
reference), the four points of FlashAttention's Figure 2, and the launch orders, whose simulated HBM
bytes the closed form must match. The exit code is 1 if anything fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.proof import registry
from perfmodel.proof.replay import launchorders
from perfmodel.proof.replay.recorder import require_interpreter
from perfmodel.proof.replay.replay import Replay, replay

# FlashAttention (Dao et al. 2022), Figure 2, middle: N = 1024, d = 64, 16 heads, batch 64, fp16.
FIGURE_2_GB = {64: 6.577, 128: 3.355, 256: 1.744, 512: 0.939}
FIGURE_2 = Attention(64, 16, 16, 1024, 1024, 64, dtype="fp16")

# Largest errors allowed for the closed form's HBM bytes over the launch orders.
MEDIAN_ERROR, P90_ERROR = 0.10, 0.25


@dataclass(frozen=True, slots=True)
class FigurePoint:
    """One block size of Figure 2: bytes of Q, K, V and O at full size.

    Every head is one block, and all blocks do the same. The full size is therefore the replayed
    bytes times (heads / blocks).
    """

    bc: int
    """Keys of a tile."""
    blocks: int
    """Heads that were replayed."""
    replayed_bytes: float
    """Bytes by the replay."""
    counted_bytes: float
    """Bytes by the rule."""
    paper_gb: float
    """Gigabytes in the paper."""
    equal: bool
    """Whether replay and rule agree to the byte."""

    @property
    def holds(self) -> bool:
        """Whether replay, rule and paper agree (the paper to its three digits)."""
        digits = abs(self.replayed_bytes / 1e9 - self.paper_gb) <= 1e-3
        return self.equal and digits and self.replayed_bytes == self.counted_bytes


def figure_2(heads: int = 2, br: int = 64, sizes: Sequence[int] = ()) -> tuple[FigurePoint, ...]:
    """The four points of Figure 2 from the FlashAttention-1 kernel; `heads` blocks are replayed."""
    require_interpreter()
    kernel = registry.kernel("attention-flash1")
    problem = replace(FIGURE_2, batch=1, heads_q=heads, heads_kv=heads)
    scale = FIGURE_2.batch * FIGURE_2.heads_q // heads
    points = []
    for bc in sizes or FIGURE_2_GB:
        config = replace(kernel.configs[0], br=br, bc=bc, accounting="paper")
        run = replay(kernel.name, problem, config, check=False)
        volume = sum(r.asked.total_bytes for r in run.tensors if r.tensor in "QKVO")
        cost = count(kernel.schedule(FIGURE_2, config), FIGURE_2.sizes(), FIGURE_2.elements())
        model = float(sum(cost.kernels[0].l2[name].total_bytes for name in "QKVO"))
        asked = float(scale * volume)
        points.append(FigurePoint(bc, heads, asked, model, FIGURE_2_GB[bc], run.equal))
    return tuple(points)


def passes(found: Replay) -> bool:
    """Whether a replay's bytes and elements are the counted ones and its result is right."""
    right = found.largest_error is not None and not found.wrong
    return right and found.equal and not found.misread


def replays(names: Sequence[str] = (), seed: int = 0) -> list[Replay]:
    """Every case of every kernel that can be interpreted (or of those named)."""
    require_interpreter()
    pool = [name for name, kernel in registry.kernels().items() if kernel.interpreted]
    kernels = [registry.kernel(name) for name in names or pool]
    return [
        replay(kernel.name, problem, config, seed=seed + i)
        for kernel in kernels
        for i, (problem, config) in enumerate(kernel.cases)
    ]


def _shape(problem: Any) -> str:
    return " ".join(f"{axis}{size}" for axis, size in problem.sizes().items())


def _replay_table(say: Callable[[str], None]) -> bool:
    sound, accesses, seconds = True, 0, 0.0
    say(f"{'kernel':28}{'problem':40}{'asked B':>12}{'counted B':>12}{'equal':>7}{'error':>10}")
    for run in replays():
        sound &= passes(run)
        accesses, seconds = accesses + run.accesses, seconds + run.seconds
        say(
            f"{run.kernel:28}{_shape(run.problem) + ' ' + run.problem.dtype:40}"
            f"{run.asked_bytes:12.0f}{run.counted_bytes:12.0f}"
            f"{'yes' if run.equal else 'NO':>7}{run.largest_error:10.1e}"
        )
    say(f"{accesses / 1e6:.1f} million accesses, {accesses / seconds * 60e-6:.0f} million a minute")
    for kernel in registry.kernels().values():
        if not kernel.interpreted:
            say(f"skipped: {kernel.name}, which nothing interprets; a device must check it")
    for line in registry.failures():
        say(f"skipped: {line}")
    return sound and not registry.failures()


def _figure_table(say: Callable[[str], None]) -> bool:
    points = figure_2()
    say("FlashAttention, Figure 2: Bc, replayed GB, counted GB, paper GB")
    for point in points:
        say(
            f"{point.bc:6}{point.replayed_bytes / 1e9:10.4f}{point.counted_bytes / 1e9:10.4f}"
            f"{point.paper_gb:8.3f}  {'holds' if point.holds else 'FAILS'}"
        )
    return all(point.holds for point in points)


def _order_table(say: Callable[[str], None]) -> bool:
    results = launchorders.run_all()
    say(
        f"{'device':18}{'launch order':52}{'simulated MB':>13}{'closed form':>12}{'error':>7}"
        f"{'predicted':>11}{'error':>7}"
    )
    for r in results:
        say(
            f"{r.device:18}{r.label:52}{r.simulated_bytes / 1e6:13.1f}"
            f"{r.closed_form_bytes / 1e6:12.1f}{r.error:+7.2f}"
            f"{r.predicted_bytes / 1e6:11.1f}{r.predicted_error:+7.2f}"
        )
    median, p90 = _spread([r.error for r in results])
    say(f"{len(results)} cases, closed form: median error {median:.1%}, p90 {p90:.1%}")
    fit = _spread([r.predicted_error for r in results])
    say(f"with the retention fitted to real caches: median {fit[0]:.1%}, p90 {fit[1]:.1%}")
    return median <= MEDIAN_ERROR and p90 <= P90_ERROR


def _spread(errors: Sequence[float]) -> tuple[float, float]:
    size = np.abs(errors)
    return float(np.median(size)), float(np.quantile(size, 0.9))


def main(say: Callable[[str], None] = print) -> int:
    """Print all three tables; returns 0 if everything passes."""
    results = [table(say) for table in (_replay_table, _figure_table, _order_table)]
    say("all evidence holds" if all(results) else "evidence FAILS: see the tables")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
