"""Tiled attention backward with recomputed scores: dQ, dK and dV in the problem's type.

A block holds a tile of keys and streams queries. dQ is either summed atomically in fp32 and
converted at the end (5 products a tile), or computed by a second kernel, whose blocks hold queries,
stream keys and recompute the scores (7 products, no atomics). The query heads of a group share one
block, or have one block each, whose partial dK and dV are added at the end.
"""

from __future__ import annotations

from perfmodel_kernels.backward_kernels import (
    attention_combine_heads,
    attention_conversion,
    attention_delta,
    attention_key_gradients,
    attention_query_gradients,
)
from perfmodel_kernels.backward_menu import FORMS, NAME, BackwardConfig, configs, menu
from perfmodel_kernels.common import (
    LOG2E,
    backward_reference,
    ceil_div,
    dims,
    forward_reference,
    inputs,
    mask_arguments,
    power_of_two,
    scale_of,
)
from perfmodel_kernels.interpreted import allow_descriptor_sums

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Argument, Array, BundledKernel, Descriptor, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled_gradients

# Query rows of a block in the delta and conversion kernels, and keys of a block in the combining
# kernel; the same as in the schedule.
ROWS = 32
COMBINED_KEYS = 32

allow_descriptor_sums()


def _spread(problem: Attention, config: BackwardConfig) -> bool:
    """Whether each query head writes partial dK and dV, which takes several heads in a group."""
    return config.spread and problem.heads_q > problem.heads_kv


def arrays_of(problem: Attention, config: BackwardConfig) -> tuple[Array, ...]:
    """Forward inputs, dO, O and L, what launches leave for each other, and the gradients."""
    b, g, r, q, x, d, e = dims(problem)
    output = problem.elements()["output"].name
    scratch = []
    if not config.apart:
        scratch.append(Array("dQ32", (b, g * r, q, d), "fp32", "scratch", fill="zero"))
    if _spread(problem, config):
        scratch.append(Array("dK32", (b, g * r, x, d), "fp32", "scratch", "dK"))
        scratch.append(Array("dV32", (b, g * r, x, e), "fp32", "scratch", "dV"))
    return (
        *inputs(problem),
        Array("dO", (b, g * r, q, e), output),
        Array("O", (b, g * r, q, e), output, fill="derived"),
        Array("L", (b, g * r, q), "fp32", fill="derived"),
        Array("D", (b, g * r, q), "fp32", "scratch"),
        Array("N", (b, g * r, q), "fp32", "scratch"),
        *scratch,
        Array("dQ", (b, g * r, q, d), output, "output"),
        Array("dK", (b, g, x, d), output, "output"),
        Array("dV", (b, g, x, e), output, "output"),
    )


def derive(problem: Attention, tensors: Tensors) -> None:
    """O and L of the forward pass."""
    found = forward_reference(problem, tensors)
    for name in ("O", "L"):
        tensors[name].copy_(found[name])


def check(problem: Attention) -> None:
    """Raise `ProblemError` for what the kernels do not compute."""
    if problem.direction != "bwd":
        raise ProblemError(f"{NAME} is a backward pass, not {problem.direction}; ask for bwd")
    for name in ("padding_mask", "dropout", "keys_only"):
        if getattr(problem, name):
            raise ProblemError(f"{NAME} knows no {name}; leave it out")
    if problem.kv_dtype not in (None, problem.dtype):
        raise ProblemError(
            f"{NAME} takes keys and values of the queries' type, not {problem.kv_dtype} with "
            f"{problem.dtype} queries; convert them first"
        )
    widest = max(dims(problem)[-2:])
    if widest > 256:
        raise ProblemError(f"{NAME} takes head dimensions up to 256, not {widest}")


def _plan(problem: Attention, config: BackwardConfig) -> tuple[Launch, ...]:
    check(problem)
    b, g, r, q, _, d, _ = dims(problem)
    wide = _widths(problem)
    launches = [delta_launch(problem), _key_launch(problem, config)]
    if _spread(problem, config):
        launches.append(_combine_launch(problem))
    if config.apart:
        return (*launches, query_launch(problem, config))
    conversion = Launch(
        "conversion",
        attention_conversion,
        (b * g * r * ceil_div(q, ROWS),),
        {"SUM": "dQ32", "DQ": "dQ", "root": scale_of(problem), "seq_q": q},
        {"D": d, "BD": wide["BD"], "ROWS": ROWS},
    )
    return (*launches, conversion)


def delta_launch(problem: Attention) -> Launch:
    """D and N of every row."""
    b, g, r, q, _, _, e = dims(problem)
    wide = _widths(problem)["BE"]
    return Launch(
        "delta",
        attention_delta,
        (b * g * r * ceil_div(q, ROWS),),
        {"OUT": "O", "DO": "dO", "L": "L", "DELTA": "D", "NORM": "N", "seq_q": q},
        {"E": e, "BE": wide, "ROWS": ROWS},
        num_warps=max(wide // 32, 4),
    )


def _widths(problem: Attention) -> dict[str, int]:
    """Head dimensions, and the padded dimensions of their tiles."""
    *_, d, e = dims(problem)
    return {"D": d, "E": e, "BD": max(power_of_two(d), 16), "BE": max(power_of_two(e), 16)}


def _arguments(problem: Attention, config: BackwardConfig, br: int, bc: int) -> dict[str, Argument]:
    """The arguments that both gradient kernels share, for tiles of br rows by bc keys."""
    b, g, r, q, x, d, e = dims(problem)
    wide = _widths(problem)
    named: dict[str, Argument] = {"Q": "Q", "K": "K", "V": "V", "DO": "dO"}
    if config.descriptors:
        named = {
            "Q": Descriptor("Q", (b * g * r, q, d), (1, br, wide["BD"])),
            "K": Descriptor("K", (b * g, x, d), (1, bc, wide["BD"])),
            "V": Descriptor("V", (b * g, x, e), (1, bc, wide["BE"])),
            "DO": Descriptor("dO", (b * g * r, q, e), (1, br, wide["BE"])),
        }
    return {
        **named,
        "NORM": "N",
        "DELTA": "D",
        "scale": scale_of(problem) * LOG2E,
        "root": scale_of(problem),
        "group": r,
        "seq_q": q,
        "seq_kv": x,
    }


def _constants(
    problem: Attention, config: BackwardConfig, br: int, bc: int
) -> dict[str, int | bool]:
    *_, q, x, _, _ = dims(problem)
    return {
        **_widths(problem),
        "BR": br,
        "BC": bc,
        **mask_arguments(problem),
        "EDGES": problem.causal or bool(problem.window) or q % br > 0 or x % bc > 0,
        "DESCRIPTORS": config.descriptors,
        "BY_BITS": config.by_bits,
    }


def _key_launch(problem: Attention, config: BackwardConfig) -> Launch:
    b, g, r, q, x, d, _ = dims(problem)
    spread, atomic = _spread(problem, config), not config.apart
    sums: Argument = "dQ32" if atomic else "dQ"
    if atomic and config.descriptors:
        sums = Descriptor("dQ32", (b * g * r, q, d), (1, config.br, _widths(problem)["BD"]))
    part = "32" if spread else ""
    return Launch(
        "key-gradients",
        attention_key_gradients,
        (b * g * (r if spread else 1) * ceil_div(x, config.bc),),
        {
            **_arguments(problem, config, config.br, config.bc),
            "DQ": sums,
            "DK": f"dK{part}",
            "DV": f"dV{part}",
        },
        {
            **_constants(problem, config, config.br, config.bc),
            "SPREAD": spread,
            "GROUPED": r > 1 and not spread,
            "SUM_QUERIES": atomic,
            "TURNED": config.turned,
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )


def query_launch(problem: Attention, config: BackwardConfig) -> Launch:
    """dQ by blocks of their own."""
    b, g, r, q, *_ = dims(problem)
    br, bc = config.query_br, config.query_bc
    return Launch(
        "query-gradients",
        attention_query_gradients,
        (b * g * r * ceil_div(q, br),),
        {**_arguments(problem, config, br, bc), "DQ": "dQ"},
        _constants(problem, config, br, bc),
        num_warps=config.query_warps,
        num_stages=config.query_stages,
    )


def _combine_launch(problem: Attention) -> Launch:
    b, g, r, _, x, _, _ = dims(problem)
    return Launch(
        "combine",
        attention_combine_heads,
        (b * g * ceil_div(x, COMBINED_KEYS),),
        {
            "KEYS": "dK32",
            "VALUES": "dV32",
            "DK": "dK",
            "DV": "dV",
            "group": r,
            "seq_kv": x,
        },
        {**_widths(problem), "ROWS": COMBINED_KEYS},
    )


def schedule_of(problem: Attention, config: BackwardConfig) -> Schedule:
    """The schedule that the model counts."""
    return tiled_gradients(
        problem.mask(),
        config.br,
        config.bc,
        queries=(config.query_br, config.query_bc) if config.apart else None,
        spread=_spread(problem, config),
        stages=config.stages,
        threads=32 * config.warps,
        query_stages=config.query_stages,
        query_threads=32 * config.query_warps,
    )


def _case(shape: tuple[int, ...], dtype: str, config: BackwardConfig, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, direction="bwd", **more), config


CASES = (
    _case((1, 2, 2, 130, 130, 64), "fp16", BackwardConfig(32, 64)),
    _case((2, 4, 2, 77, 130, 40), "fp32", BackwardConfig(32, 32, spread=True), causal=True),
    _case((1, 6, 2, 100, 100, 64), "fp16", BackwardConfig(64, 32, query_br=32), causal=True),
    _case(
        (1, 2, 1, 150, 150, 32),
        "fp32",
        BackwardConfig(32, 32, turned=True, descriptors=True),
        causal=True,
        window=40,
    ),
    _case((1, 2, 1, 90, 160, 32), "fp16", BackwardConfig(16, 64, by_bits=True), window=50),
    _case((1, 2, 2, 130, 70, 16), "fp32", BackwardConfig(32, 16), causal=True),
    _case((1, 2, 1, 65, 140, 48, 32), "fp16", BackwardConfig(64, 128, descriptors=True)),
    _case(
        (1, 4, 1, 165, 140, 48, 32),
        "fp32",
        BackwardConfig(16, 32, query_br=32, query_bc=16, spread=True, descriptors=True),
        window=33,
    ),
    # The last key opens a tile.
    _case((1, 2, 1, 97, 97, 32), "fp32", BackwardConfig(32, 32, query_bc=32), causal=True),
)
KERNELS = (
    BundledKernel(
        name=NAME,
        summary="tiled attention backward, scores recomputed",
        dtypes=("fp32", "fp16", "bf16"),
        configs=configs(),
        cases=CASES,
        arrays=arrays_of,
        plan=_plan,
        schedule=schedule_of,
        reference_of=backward_reference,
        derive=derive,
        menu_of=menu,
        forms=FORMS,
    ),
)
