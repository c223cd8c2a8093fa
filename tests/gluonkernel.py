"""Runs a Gluon kernel in the functional model (gluonsim), unchanged or with one line changed."""

from __future__ import annotations

import inspect
from itertools import product
from types import ModuleType, SimpleNamespace

from gluonsim import Deadlock, Described, Int, Pointer, execute

from perfmodel.proof.kernel import Descriptor, Inputs

ALLOWED = 3e-3  # of half precision


def simulate(kernel, module, problem, config, seed=0, loud=1):
    """Errors of outputs by name, and the bytes that copies moved of each array.

    Queries are `loud` times as large as usual, and scores with them.
    """
    drawn = kernel.make_inputs(problem, seed).tensors
    inputs = Inputs(problem, {**drawn, "Q": drawn["Q"] * loud})
    made = {**inputs.tensors, **kernel.allocate(problem, config)}
    arrays = {name: value.numpy() for name, value in made.items()}
    (launch,) = kernel.launches(problem, config)
    described = {}
    arguments = {}
    for name, value in launch.arguments.items():
        if isinstance(value, Descriptor):
            described[value.array] = Described(
                arrays[value.array].reshape(value.shape), value.block
            )
            arguments[name] = described[value.array]
        elif isinstance(value, str):
            arguments[name] = Pointer(arrays[value].reshape(-1))
        else:
            arguments[name] = Int(value) if isinstance(value, int) else value
    execute(module, "attention_forward", launch.blocks, arguments, launch.constexprs, seed)
    errors = kernel.errors(inputs, {"O": made["O"], "L": made["L"]})
    return errors, {name: found.moved for name, found in described.items()}


def broken(module, old, new):
    """The kernel's module with one line changed, as plain functions."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, old
    changed = ModuleType("broken")
    source = source.replace(old, new).replace("@gluon.jit", "@plain")
    changed.plain = lambda function: SimpleNamespace(fn=function)
    exec(compile(source, "broken", "exec"), vars(changed))
    return changed


def is_found_out(kernel, module, problems, config, seeds, louds=(1,)):
    """Whether a kernel raises or gives wrong results on any of the problems, for any seed."""
    for seed in range(seeds):
        for problem, loud in product(problems, louds):
            try:
                errors, _ = simulate(kernel, module, problem, config, seed, loud)
            except (Deadlock, AssertionError):
                return True
            if not max(errors.values()) < ALLOWED:
                return True
    return False
