"""Pruning for Triton's autotuner: the configs worth timing, by the model instead of by runs.

    import perfmodel.triton as pm

    tiles = pm.matmul(m="M", n="N", k="K", data="a_ptr", tile=("BM", "BN", "BK"))

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by=pm.prune(tiles, top_k=8))

    description   what a kernel computes, by the names of its arguments and config fields
    running       configs that cannot run: shared memory, registers, failed compilations
    ranking       `rank` sorts configs, `choose` picks one without a run
    tuning        `prune`, for `prune_configs_by`; without an answer it keeps every config

torch and triton are imported only to find this machine's device.
"""

from perfmodel.triton.description import Description, attention, matmul, rows
from perfmodel.triton.ranking import Ranked, choose, rank
from perfmodel.triton.tuning import prune

__all__ = ["Description", "Ranked", "attention", "choose", "matmul", "prune", "rank", "rows"]
