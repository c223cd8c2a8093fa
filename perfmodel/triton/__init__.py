"""Pruning for Triton's autotuner: the configs worth timing, by the model instead of by runs.

    import perfmodel.triton as pm

    tiles = pm.matmul(m="M", n="N", k="K", data="a_ptr", tile=("BM", "BN", "BK"))

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by=pm.prune(tiles, top_k=8))

    description   what a kernel computes, by the names of its arguments and config fields
    running       configs that cannot run: shared memory, registers, failed compilations
    ranking       `rank` sorts configs, `choose` picks one without a run; `prune`, for
                  `prune_configs_by`, keeps every config where it has no answer

torch and triton are imported only to find this machine's device.
"""

from perfmodel.triton.description import Description, attention, matmul, rows
from perfmodel.triton.ranking import Ranked, choose, prune, rank

__all__ = ["Description", "Ranked", "attention", "choose", "matmul", "prune", "rank", "rows"]
