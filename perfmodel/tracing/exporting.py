"""What torch.export makes of a module, taken the way that it runs on a device."""

from __future__ import annotations

import inspect
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from perfmodel.tracing.module import TraceError, said
from perfmodel.tracing.values import values_known


def exported(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The exported program; raises `TraceError` for what torch.export cannot follow.

    `strict=False` keeps attention, linear layers and norms whole, and a record of the module that
    each node stands in, where other ways of tracing take them apart. The program returns every
    tensor that the module returns, those inside objects such as a cache too.
    """
    import torch

    call: Callable[..., Any] = torch.export.export
    try:
        with (
            redirect_stdout(sys.stderr),  # what the module prints is no part of a result
            torch.no_grad(),
            _silence(),
            _compile_mode(),
            values_known(),
            _tensor_outputs(module),
        ):
            return call(module, tuple(args), dict(kwargs), strict=False)
    except BaseException as error:  # whatever a user's forward raises, sys.exit() included
        if isinstance(error, KeyboardInterrupt):
            raise
        name = type(module).__name__
        hint = _name_hint(module, kwargs)
        raise TraceError(f"{name} cannot be traced: {said(error)}{hint}") from error


def _name_hint(module: Any, kwargs: Mapping[str, Any]) -> str:
    """Which inputs are called otherwise than the arguments of a module, and what these are."""
    parameters = [name for name in inspect.signature(module.forward).parameters if name != "kwargs"]
    others = [name for name in kwargs if name not in parameters]
    if not others:
        return ""
    return f"; it has no argument named {', '.join(others)}, but {', '.join(parameters[:12])}"


@contextmanager
def _tensor_outputs(module: Any) -> Iterator[None]:
    """Let a module return the tensors of what it returns: torch.export takes no other objects."""
    hook = module.register_forward_hook(lambda _module, _args, output: tuple(_tensors(output)))
    try:
        yield
    finally:
        hook.remove()


def _tensors(tree: Any) -> Iterator[Any]:
    """Every tensor of a value, each once: in containers that torch knows, and in attributes."""
    import torch
    from torch.utils import _pytree as pytree

    ids: set[int] = set()
    queue = [tree]
    while queue:
        item = queue.pop(0)
        if id(item) in ids:
            continue
        ids.add(id(item))
        if isinstance(item, torch.Tensor):
            yield item
            continue
        leaves = pytree.tree_leaves(item)
        if len(leaves) != 1 or leaves[0] is not item:
            queue += leaves
        elif hasattr(item, "__dict__") and not isinstance(item, type | torch.nn.Module):
            queue += vars(item).values()


@contextmanager
def _compile_mode() -> Iterator[None]:
    """Let code outside torch hear that it is compiled, and not that it is exported.

    What a module does for an export alone is no part of its run: transformers then makes causal
    masks as tensors, where its run has the kernel hide them. torch itself hears the truth.
    """
    import torch

    original = torch.compiler.is_exporting

    def is_exporting() -> bool:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        return caller.partition(".")[0] == "torch" and original()

    setattr(torch.compiler, "is_exporting", is_exporting)  # noqa: B010
    try:
        yield
    finally:
        setattr(torch.compiler, "is_exporting", original)  # noqa: B010


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing but an error comes out: torch logs pages about what it cannot follow."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
