"""What torch.export makes of a module, taken the way that it runs on a device.

Code may ask for values though a trace has only shapes: those made of constants alone are known.
Position ids are an arange; whether they hold several sequences is found by diff, cumsum and eq of
them. A run looks at the answer and takes the causal kernel, so a trace has to know it too.
"""

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
    hook = module.register_forward_hook(lambda _module, _args, output: tuple(tensors(output)))
    try:
        yield
    finally:
        hook.remove()


def tensors(tree: Any) -> Iterator[Any]:
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


_MOST_ELEMENTS = 1 << 20  # of a tensor whose values are worked out
_CONSTANTS = ("arange", "zeros", "ones", "full", "linspace", "eye", "zeros_like", "ones_like")
_ASKED = ("__bool__", "item", "__int__", "__float__", "__index__", "tolist")


@contextmanager
def values_known() -> Iterator[None]:
    """Let the code that is traced see the values of tensors that are made of constants alone.

    transformers looks at no values where a tensor is traced; of these it is told that none is.
    """
    mode = _constant_mode()
    masks = sys.modules.get("transformers.masking_utils")
    original = getattr(masks, "is_tracing", None)

    def is_tracing(tensor: Any = None) -> bool:
        return tensor not in mode and bool(original(tensor)) if original else True

    if original is not None:
        setattr(masks, "is_tracing", is_tracing)  # noqa: B010
    try:
        with mode:
            yield
    finally:
        if original is not None:
            setattr(masks, "is_tracing", original)  # noqa: B010


def _constant_mode() -> Any:
    """A mode of torch that remembers how tensors are made of constants, and makes them when asked.

    Within it there are no tensors of values: each call is made again on a CPU.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import _disable_current_modes

    constants = {getattr(torch, name) for name in _CONSTANTS}
    queries = {getattr(torch.Tensor, name) for name in _ASKED}

    class Known(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            # By identity, with the tensor itself so that no other one takes its place.
            self._recipes: dict[int, tuple[Any, Any, Any, Any]] = {}
            self._values: dict[int, Any] = {}

        def __contains__(self, tensor: object) -> bool:
            return id(tensor) in self._recipes

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
            all_known = all(x in self for x in tensors)
            if func in queries and tensors and all_known:
                value = self._value(tensors[0])
                with _disable_current_modes():
                    return func(value, *args[1:], **kwargs)
            out = func(*args, **kwargs)
            name = getattr(func, "__name__", "")
            if (name.endswith("_") and not name.endswith("__")) or name == "__setitem__":
                for x in tensors:  # written in place
                    self._recipes.pop(id(x), None)
            elif (
                isinstance(out, torch.Tensor)
                and out.numel() <= _MOST_ELEMENTS
                and all_known
                and (tensors or func in constants)
            ):
                self._recipes[id(out)] = (out, func, args, kwargs)
            return out

        def _value(self, tensor: Any) -> Any:
            if id(tensor) not in self._values:
                _, func, args, kwargs = self._recipes[id(tensor)]
                args, kwargs = pytree.tree_map(self._replacement, (args, kwargs))
                with _disable_current_modes(), torch._C.DisableTorchFunction():
                    self._values[id(tensor)] = func(*args, **kwargs)
            return self._values[id(tensor)]

        def _replacement(self, item: Any) -> Any:
            if isinstance(item, torch.Tensor):
                return self._value(item)
            return torch.device("cpu") if isinstance(item, torch.device) else item

    return Known()
