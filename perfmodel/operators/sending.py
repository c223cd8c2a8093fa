"""Tokens that are sent to the ranks of their experts, and results that come back: one kernel.

    start + max(copies · bytes / units, away / link) + copies · cycles / units

A token goes once to each rank that holds some of its experts, or once for each expert
(`Sending.copies`). The units that send move all copies, the link those for other ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.algorithms.grouped import reached
from perfmodel.errors import ProblemError
from perfmodel.timing import exchange
from perfmodel.timing.kernel import term_names
from perfmodel.timing.libraries.facts import Sending
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Estimate


def estimate(
    sending: Sending, values: Mapping[str, Any], token_bytes: float, chip: Machine, n: int
) -> tuple[Estimate, str]:
    """The kernel's time, shape (n,), and the sentence on its link.

    `values` are the tokens of a rank, `hidden`, `top_k`, `ranks` and `sms`; `token_bytes` are those
    of an element. Tokens cross the link to its peers, or the host's where it has none. Raises
    `ProblemError` where it has neither.
    """
    names = [level.name for level in chip.device.levels() if level.scope == "link"]
    if not names:
        raise ProblemError(f"{chip.device.slug} has no link that tokens could be sent over")
    level, link = exchange.link_of(chip.device, "peer" if "peer" in names else "host")
    tokens, hidden, chosen, ranks, sms = (
        np.broadcast_to(np.asarray(values[name], dtype=np.float64).reshape(-1), (n,))
        for name in ("tokens", "hidden", "top_k", "ranks", "sms")
    )
    copies = tokens * (reached(ranks, chosen) if sending.copies == "ranks" else chosen)
    moved = copies * hidden * token_bytes
    away = moved * (ranks - 1.0) / ranks
    units = np.where(sms > 0, sms, sending.units or chip.units)
    by_units = moved / (units * sending.unit_bytes * chip.clock_hz)
    by_link = away / (link.bytes_per_s * sending.link_share)
    placing = copies * sending.copy_cycles / (units * chip.clock_hz)
    seconds = sending.start_seconds + np.maximum(by_units, by_link) + placing
    zero = np.zeros(n)
    levels = chip.boundaries
    terms = {**dict.fromkeys((*term_names(levels), "gap"), zero), "latency": zero + placing}
    terms |= {"gap": zero + sending.start_seconds, "l2": by_units, level.name: by_link}
    bytes_ = {**dict.fromkeys(reversed(levels), zero), "l2": 2.0 * moved, "hbm": 2.0 * moved}
    bytes_ |= {level.name: away}
    total = Estimate(
        seconds=seconds, terms=terms, matrix_flops=zero, vector_ops=zero, special_ops=zero,
        bytes=bytes_, waves=zero + 1.0, occupancy=zero + 1.0, memory_bytes=2.0 * moved,
        beyond_bytes={},
    )  # fmt: skip
    return total, exchange.sentence(level, link)
