"""One kernel's counts → seconds, every term kept.

    t = block price + fill + max(power, ‖ busiest unit, L2, …, HBM, latency ‖)

The busiest unit runs matrix, special-function and vector work, overlapped as far as the schedule
class does. Shared-memory traffic overlaps with matrix work. The resources outside the unit join as
a p-norm. Serial costs are added: starting a block, filling and draining its pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count import KernelCost
from perfmodel.count.executed import Executed, executed
from perfmodel.elements import ElementType
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing import memory, pipes, power
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Link, Machine
from perfmodel.timing.occupancy import Residency, residency
from perfmodel.timing.pipes import Balance
from perfmodel.timing.reuse import Reuses
from perfmodel.timing.style import Style
from perfmodel.timing.traffic import Traffic, traffic

_NOWHERE: Mapping[str, Link] = {}

# Terms of resources inside a compute unit.
_UNIT = ("matrix", "special", "vector", "shared", "power", "blocks")


def term_names(boundaries: Sequence[str]) -> tuple[str, ...]:
    """The terms of a kernel on a device whose bytes are counted at `boundaries`."""
    unit, *outer = boundaries
    return ("matrix", "special", "vector", unit, "transpose", *outer, "latency", "power", "blocks")


@dataclass(frozen=True)
class Slots:
    """Pipe cycles of a compiled binary: they replace the algorithm's operation counts."""

    cycles: Mapping[str, float]
    """Cycles of each pipe of a unit in one pass of a block's loop; without a loop, in a whole
    block. Pipes are named as in `perfmodel.proof.compiled.issueslots`."""
    flops_per_pass: float = 0.0
    """Matrix operations of that pass; 0 where there are no matrix instructions."""
    looped: bool = True
    """Whether the binary has a loop."""

    def passes(self, cost: KernelCost, work: Executed) -> Number:
        """Passes of the loop, summed over all blocks."""
        if self.flops_per_pass:
            return work.matrix_flops / self.flops_per_pass
        return cost.passes if self.looped else cost.blocks

    def busiest(self, *pipes: str) -> float:
        """The largest number of cycles among some pipes, which work in parallel."""
        return max((self.cycles.get(pipe, 0.0) for pipe in pipes), default=0.0)


@dataclass(frozen=True)
class KernelTime:
    """Seconds of one kernel; infinite where it does not fit on chip. Arrays over problems and
    tiles."""

    seconds: np.ndarray
    """Seconds of the kernel."""
    terms: Mapping[str, np.ndarray]
    """Seconds of each term."""
    bytes: Mapping[str, np.ndarray]
    """Bytes that cross into each level."""
    waves: np.ndarray
    """Waves of thread blocks."""
    occupancy: np.ndarray
    """Blocks that a unit holds at once."""


def time_kernel(
    machine: Machine,
    constants: Constants,
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    style: Style,
    slots: Slots | None = None,
    placed: Mapping[str, Link] = _NOWHERE,
    reuse: Reuses | None = None,
) -> KernelTime:
    """Time one counted kernel; arrays broadcast over problems and tiles.

    With `slots`, the vector and special units and the shared-memory port take the cycles of the
    binary's instructions instead of those of the algorithm's operations. Inputs `placed` behind a
    link are read over it (`perfmodel.timing.placing`). `reuse` says what earlier kernels left in
    the caches; it replaces `style.run.warm`.
    """
    grid = residency(machine, cost, style.resident)
    if "waves" in constants.off:
        grid = replace(grid, busiest=np.asarray(cost.blocks / machine.units, dtype=np.float64))
    work = executed(schedule, cost, style.compiled_for, whole_tiles="padding" not in constants.off)
    flows = traffic(
        machine,
        constants,
        schedule,
        cost,
        elements,
        grid,
        style.run,
        shared=style.shared,
        multicast=style.multicast,
        placed={name: link.name for name, link in placed.items()},
        reuse=reuse,
    )
    links = {link.name: link for link in placed.values() if link.name in flows.linked_bytes}
    balance = pipes.balance(cost, grid, longest_first=style.longest_first)
    terms = {
        **_unit_seconds(machine, constants, cost, work, balance.share, grid, style, slots),
        **_memory_seconds(machine, constants, cost, flows, grid, balance, style, links),
        "transpose": _transposing_seconds(cost, grid, balance, style),
    }
    terms |= {name: np.zeros(()) for name in constants.off & terms.keys()}
    blocks = _block_seconds(machine, constants, grid, style) + fill_seconds(
        terms, cost, grid, style, balance.share
    )
    loads = _streams(terms)
    terms["blocks"] = np.zeros(()) if "blocks" in constants.off else blocks
    unit_seconds = busy_seconds(terms, balance.longest / balance.share, grid, style)
    streams = [*loads, terms["transpose"]] if np.any(terms["transpose"]) else loads
    # The board lowers its clocks only as far as the power needs: a limit, not a resource to share.
    sustained = _sustained_seconds(machine, constants, work, flows, style)
    at_boost = _overlap_seconds(constants, unit_seconds, streams, style)
    if style.large_product is not None:
        flops = np.asarray(work.matrix_flops, dtype=np.float64)
        at_boost = np.maximum(at_boost, flops * style.large_product.boost_seconds)
        sustained = np.maximum(sustained, flops * style.large_product.power_seconds)
    if style.turns.waits:
        at_boost = np.maximum(at_boost, in_turn_seconds(machine, terms, balance, grid, style))
    loop_seconds = power.held_down_seconds(at_boost, sustained, style.run.lag_seconds)
    terms["power"] = np.minimum(sustained, loop_seconds)
    seconds = np.where(grid.blocks_per_unit < 1, np.inf, terms["blocks"] + loop_seconds)
    if links:
        outer = _outer_seconds(machine, constants, flows, style)
        terms |= {name: each for name, each in outer.items() if name not in constants.off}
    crossings = {"shared": np.asarray(cost.shared_bytes), "l2": flows.l2_bytes}
    crossings |= {} if flows.llc_bytes is None else {"llc": flows.llc_bytes}
    crossings |= {"hbm": flows.hbm_bytes, **flows.linked_bytes}
    return KernelTime(seconds, terms, crossings, grid.waves, grid.blocks_per_unit)


def _streams(terms: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Seconds at every boundary from the L2 outwards, and of the latency term."""
    return [seconds for name, seconds in terms.items() if name not in (*_UNIT, "transpose")]


def _overlap_seconds(
    constants: Constants, unit_seconds: np.ndarray, streams: list[np.ndarray], style: Style
) -> np.ndarray:
    """Seconds of the units and of the memory system, overlapped.

    In an element-wise map a thread waits for its own loads only, and other threads compute and load
    meanwhile. Its arithmetic and its memory levels overlap further: the exponent is
    `map_overlap_power`.
    """
    power = constants["overlap_power"] if style.overlap_power is None else style.overlap_power
    return pipes.together([unit_seconds, *streams], power)


def _unit_seconds(
    machine: Machine,
    constants: Constants,
    cost: KernelCost,
    work: Executed,
    share: np.ndarray,
    grid: Residency,
    style: Style,
    slots: Slots | None,
) -> dict[str, np.ndarray]:
    """Seconds of each pipe of the busiest unit, by itself."""
    special = work.special_ops + style.code.special_ops
    integer_part = style.code.integer_share * work.vector_ops
    vector = work.vector_ops - integer_part + style.code.vector_ops
    integer = style.code.integer_ops + integer_part
    if style.code.accurate:
        vector_cost, integer_cost = machine.architecture.accurate_ops
        vector, integer = vector + vector_cost * special, integer + integer_cost * special
    vector_slots = pipes.vector_slots(machine, vector, integer)
    matrix_rate = machine.matrix_per_unit(style.compute) * style.matrix_share
    threads = cost.nest.kernel.threads * grid.concurrent
    awake = pipes.awake_share(machine, constants, threads)
    matrix_awake = pipes.awake_share(machine, constants, threads / style.turns.warps)

    def unit(total: Number, rate: Number) -> np.ndarray:
        return pipes.per_unit_seconds(total, rate, cost.blocks, share)

    terms = {
        "matrix": unit(work.matrix_flops, matrix_rate * matrix_awake),
        "special": unit(special, machine.special_per_unit * awake),
        "vector": unit(vector_slots, machine.vector_ops_per_unit * style.code.vector_share * awake),
        "shared": unit(cost.shared_bytes, machine.shared_bytes_per_unit),
    }
    if slots is None:
        return terms
    passes = slots.passes(cost, work)
    issued = slots.busiest("alu", "fma", "issue", "valu", "scalar")
    accesses = unit(slots.busiest("lsu", "lds", "vmem") * passes, machine.clock_hz)
    in_binary = {
        "special": unit(slots.busiest("special") * passes, machine.clock_hz * awake),
        "vector": unit(issued * passes, machine.clock_hz * awake),
        "shared": np.maximum(terms["shared"], accesses),
    }
    # The loop of a specialised binary is that of the warps that multiply. Where it has none of the
    # exponentials, other warps of the block compute them, and the vector work around them.
    other_warps = slots.flops_per_pass > 0 and not slots.busiest("special", "valu")
    if other_warps and np.any(terms["special"]):
        for name in ("special", "vector"):
            in_binary[name] = np.maximum(in_binary[name], terms[name])
    return terms | in_binary


def _memory_seconds(
    machine: Machine,
    constants: Constants,
    cost: KernelCost,
    flows: Traffic,
    grid: Residency,
    balance: Balance,
    style: Style,
    links: Mapping[str, Link],
) -> dict[str, np.ndarray]:
    """Seconds at the boundaries from the L2 outwards, and of waiting for loads.

    Bytes that come over links also take their share of the boundaries that they cross on the way.
    """
    l2_share = machine.architecture.l2_stream_share if style.streams else 1.0
    asked_bytes = flows.l2_bytes / l2_share
    l2 = memory.l2_seconds(
        machine,
        constants,
        cost,
        grid,
        asked_bytes,
        copied=style.tensor_copies,
    )
    streams = {"l2": l2, **_outer_seconds(machine, constants, flows.through(), style)}
    for name, link in links.items():
        streams[name] = memory.link_seconds(
            machine, constants, link, flows.linked_bytes[name], style.stream_share
        )
    latency = memory.mean_latency(machine, flows.missed, flows.near, flows.caught)
    latency = latency + memory.link_latency(machine, links, flows.linked)
    alone = style.block.waits * latency
    wait = memory.latency_seconds(cost, grid, balance, latency, alone)
    busiest = streams["hbm"]
    for stream in streams.values():
        busiest = np.maximum(busiest, stream)
    wait = memory.loaded_seconds(constants, wait, busiest)
    if style.block.turn_seconds:  # loads ahead of use overlap with it
        turn = style.block.turn_seconds * cost.passes / cost.blocks
        wait = np.maximum(wait, memory.latency_seconds(cost, grid, balance, 0.0, turn + alone))
    steps = grid.busiest / grid.concurrent * machine.at_clock(style.block.chain_seconds)
    return {**streams, "latency": wait + steps}


def _outer_seconds(
    machine: Machine, constants: Constants, flows: Traffic, style: Style
) -> dict[str, np.ndarray]:
    """Seconds at the boundaries behind the L2, the memory-side cache first, then device memory."""
    hbm = memory.hbm_seconds(machine, constants, flows, style.stream_share)
    llc = memory.llc_seconds(machine, constants, flows)
    return {"hbm": hbm} if llc is None else {"llc": llc, "hbm": hbm}


def _transposing_seconds(
    cost: KernelCost, grid: Residency, balance: Balance, style: Style
) -> np.ndarray:
    """Seconds in which the loading warps of the busiest unit transpose the tiles they stream."""
    if not np.any(style.block.tile_seconds):
        return np.zeros(())
    return memory.latency_seconds(cost, grid, balance, style.block.tile_seconds)


def _sustained_seconds(
    machine: Machine,
    constants: Constants,
    work: Executed,
    flows: Traffic,
    style: Style,
) -> np.ndarray:
    """Least seconds that the power limit allows the main loop."""
    if "power" in constants.off:
        return np.zeros(())
    return power.power_seconds(
        machine,
        constants,
        style.compute,
        np.asarray(work.matrix_flops, dtype=np.float64),
        flows.through().hbm_bytes,
        activity=style.run.activity,
        share=style.matrix_share,
    )


def _block_seconds(
    machine: Machine, constants: Constants, grid: Residency, style: Style
) -> np.ndarray:
    """Seconds to start and end blocks, round by round, and to set up once."""
    rounds = grid.busiest / grid.concurrent ** constants["block_overlap"]
    price = machine.at_clock(constants["block_price"] * style.block.price)
    start = machine.at_clock(style.block.setup_seconds)
    return np.asarray(np.maximum(rounds * price + start, 0.0) + style.block.search_seconds)


def busy_seconds(
    terms: Mapping[str, np.ndarray], alone: Number, where: Residency, style: Style
) -> np.ndarray:
    """Seconds of the busiest unit, its pipes overlapped.

    Where one block overlaps nothing (`turns.alone`), the unit needs at least the sum of its stages
    times max(1 / resident blocks, `alone`). `alone` is the longest block's share of the unit's
    work.
    """
    stages = _stages(terms, style)
    seconds = pipes.overlapped(stages, style.overlap)
    if style.turns.alone:
        block_share = np.maximum(1.0 / where.concurrent, alone)
        seconds = np.maximum(seconds, block_share * sum(stages, start=np.zeros(())))
    return np.asarray(seconds)


def in_turn_seconds(
    machine: Machine,
    terms: Mapping[str, np.ndarray],
    even: Balance,
    where: Residency,
    style: Style,
) -> np.ndarray:
    """Seconds of a unit whose blocks load, multiply and fold one tile after the other.

    A block with one buffer for its keys and one for its values requests a tile when it is done with
    the tile before. It waits for each load in turn, takes the bytes through the unit's port (64
    bytes a clock), writes them from registers to shared memory, and then computes. Only other
    blocks of the unit work meanwhile.
    """
    waits = style.turns.waits * terms["latency"]
    staging = 1.0 + 64.0 * machine.clock_hz / machine.shared_bytes_per_unit
    seconds = sum(_stages(terms, style), start=np.asarray(staging * terms["l2"]))
    block_share = np.maximum(1.0 / where.concurrent, even.longest / even.share)
    return np.asarray(waits + block_share * seconds)


def _stages(terms: Mapping[str, np.ndarray], style: Style) -> list[np.ndarray]:
    """Seconds of each stage that a block runs one after the other.

    Where operand fetches run ahead in hardware queues, the slower of fetch and product counts.
    Where warps fetch operands themselves, the two join as a p-norm with exponent
    `turns.fetched_by`.
    """
    fetch, products = terms["shared"], terms["matrix"]
    if style.turns.fetched_by is None:
        products = np.maximum(products, fetch)
    else:
        products = pipes.together([products, fetch], style.turns.fetched_by)
    special, vector = terms["special"], terms["vector"]
    stages = [products, special + vector] if style.turns.chained else [products, special, vector]
    if np.any(style.turns.exchange):
        stages.append(np.asarray(terms["matrix"] * style.turns.exchange))
    return stages


def fill_seconds(
    terms: Mapping[str, np.ndarray],
    cost: KernelCost,
    where: Residency,
    style: Style,
    share: Number,
) -> np.ndarray:
    """Seconds of pipeline fill and drain, which overlap with nothing in their own block.

    The first tile is loaded before anything multiplies it, and the last result is stored after the
    loop. One of a block's n tiles therefore passes every stage by itself. With T the sum and M the
    maximum of the stages over all tiles, (T − M) / n stays unhidden where a unit holds one block at
    a time.

    Where a unit holds several blocks, only a share of that is left, since the other blocks work
    meanwhile. A persistent block loads the next tile's operands meanwhile. A block that restarts
    its stream fills again: FlashAttention-1 does for every tile of keys (`turns.fills`).

    Row-wise kernels have so many resident blocks that the fill is hidden: 0.
    """
    if cost.nest.kernel.operand_tile is None:
        return np.zeros(())
    compute = _stages(terms, style)
    first = terms["transpose"] + _excess([*compute, *_streams(terms)])
    refill = terms["transpose"] + _excess(compute) if style.persistent else first
    tiles = np.maximum(np.asarray(cost.passes, dtype=np.float64) / cost.blocks, 1.0)
    later_rounds = np.maximum(where.busiest - 1.0, 0.0) / np.maximum(where.blocks_per_unit, 1.0)
    fill = (first * where.concurrent + later_rounds * refill) / (tiles * np.maximum(share, 1.0))
    return np.asarray(fill * style.turns.fills)


def _excess(stages: list[np.ndarray]) -> np.ndarray:
    """The sum of stages less the longest one."""
    total, longest = stages[0], stages[0]
    for stage in stages[1:]:
        total, longest = total + stage, np.maximum(longest, stage)
    return np.asarray(total - longest)
