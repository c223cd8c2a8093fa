"""Runs a Gluon kernel in the functional model (gluonsim), unchanged or with one line changed."""

from __future__ import annotations

import inspect
from itertools import product
from types import ModuleType, SimpleNamespace

from gluonsim import Deadlock, Described, Int, Pointer, execute

from perfmodel.proof.kernel import Descriptor, Inputs, relative_error

ALLOWED = 3e-3  # of half precision


def simulate(kernel, module, problem, config, seed=0, loud=1, prepare=None):
    """Errors of outputs by name, and the bytes that copies moved of each array.

    Queries are `loud` times as large as usual, and scores with them. `prepare` fills in what
    launches before that of the module leave.
    """
    drawn = kernel.make_inputs(problem, seed).tensors
    inputs = Inputs(problem, {**drawn, "Q": drawn["Q"] * loud})
    made = {**inputs.tensors, **kernel.allocate(problem, config)}
    if prepare is not None:
        prepare(made)
    arrays = {name: value.numpy() for name, value in made.items()}
    launches = {each.function.fn.__name__: each for each in kernel.launches(problem, config)}
    (name,) = (name for name in launches if hasattr(module, name))
    launch = launches[name]
    described = {}
    arguments = {}
    for parameter, value in launch.arguments.items():
        if isinstance(value, Descriptor):
            described[value.array] = Described(
                arrays[value.array].reshape(value.shape), value.block
            )
            arguments[parameter] = described[value.array]
        elif isinstance(value, str):
            arguments[parameter] = Pointer(arrays[value].reshape(-1))
        else:
            arguments[parameter] = Int(value) if isinstance(value, int) else value
    execute(module, name, launch.blocks, arguments, launch.constexprs, seed)
    parameters = [getattr(value, "array", value) for value in launch.arguments.values()]
    outputs = [each.name for each in kernel.arrays(problem, config) if each.role == "output"]
    expected = kernel.reference(inputs)
    errors = {
        name: relative_error(made[name], expected[name]) for name in outputs if name in parameters
    }
    return errors, {name: found.moved for name, found in described.items()}


def is_right(errors):
    """Whether no output is off by more than half precision allows, or NaN."""
    return all(error < ALLOWED for error in errors.values())


def broken(module, old, new):
    """The kernel's module with one line changed, as plain functions."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, old
    changed = ModuleType("broken")
    source = source.replace(old, new).replace("@gluon.jit", "@plain")
    changed.plain = lambda function: SimpleNamespace(fn=function)
    exec(compile(source, "broken", "exec"), vars(changed))
    return changed


def is_found_out(kernel, module, problems, config, seeds, louds=(1,), prepare=None):
    """Whether a kernel raises or gives wrong results on any of the problems, for any seed."""
    for seed in range(seeds):
        for problem, loud in product(problems, louds):
            try:
                errors, _ = simulate(kernel, module, problem, config, seed, loud, prepare)
            except (Deadlock, AssertionError):
                return True
            if not is_right(errors):
                return True
    return False
