"""Triton's autotuner: which configs are worth timing, from the model instead of from runs.

    import perfmodel.triton as pm

    tiles = pm.matmul(m="M", n="N", k="K", data="a_ptr", tile=("BM", "BN", "BK"))

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by=pm.prune(tiles, top_k=8))

    description   what a kernel computes, by the names of its arguments and of its config's fields
    running       which configs cannot run: shared memory, registers, what compilers have refused
    ranking       `rank` sorts configs, `choose` takes one without any run
    tuning        `prune`, for `prune_configs_by`: never raises, and then keeps every config

Nothing here imports torch or triton until a device has to be found out.
"""

from perfmodel.triton.description import Description, attention, matmul, rows
from perfmodel.triton.ranking import Ranked, choose, rank
from perfmodel.triton.tuning import prune

__all__ = ["Description", "Ranked", "attention", "choose", "matmul", "prune", "rank", "rows"]
