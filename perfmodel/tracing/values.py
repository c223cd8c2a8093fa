"""Values that code may ask for though a trace has only shapes: those made of constants alone.

Position ids are an arange; whether they hold several sequences is found by diff, cumsum and eq of
them. A run looks at the answer and takes the causal kernel, so a trace has to know it too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_ELEMENTS = 1 << 20  # of a tensor whose values are worked out
_CONSTANTS = ("arange", "zeros", "ones", "full", "linspace", "eye", "zeros_like", "ones_like")
_ASKED = ("__bool__", "item", "__int__", "__float__", "__index__", "tolist")


@contextmanager
def values_known() -> Iterator[None]:
    """Let the code that is traced see the values of tensors that are made of constants alone.

    transformers looks at no values where a tensor is traced; of these it is told that none is.
    """
    known = _known()
    masks = sys.modules.get("transformers.masking_utils")
    asked = getattr(masks, "is_tracing", None)

    def is_tracing(tensor: Any = None) -> bool:
        return tensor not in known and bool(asked(tensor)) if asked else True

    if asked is not None:
        setattr(masks, "is_tracing", is_tracing)  # noqa: B010
    try:
        with known:
            yield
    finally:
        if asked is not None:
            setattr(masks, "is_tracing", asked)  # noqa: B010


def _known() -> Any:
    """A mode of torch that remembers how tensors are made of constants, and makes them when asked.

    Within it there are no tensors of values: each call is made again on a CPU.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import _disable_current_modes

    constants = {getattr(torch, name) for name in _CONSTANTS}
    asked = {getattr(torch.Tensor, name) for name in _ASKED}

    class Known(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            # By identity, with the tensor itself so that no other one takes its place.
            self._made: dict[int, tuple[Any, Any, Any, Any]] = {}
            self._values: dict[int, Any] = {}

        def __contains__(self, tensor: object) -> bool:
            return id(tensor) in self._made

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
            all_known = all(x in self for x in tensors)
            if func in asked and tensors and all_known:
                value = self._value(tensors[0])
                with _disable_current_modes():
                    return func(value, *args[1:], **kwargs)
            made = func(*args, **kwargs)
            name = getattr(func, "__name__", "")
            if (name.endswith("_") and not name.endswith("__")) or name == "__setitem__":
                for x in tensors:  # written in place
                    self._made.pop(id(x), None)
            elif (
                isinstance(made, torch.Tensor)
                and made.numel() <= _MOST_ELEMENTS
                and all_known
                and (tensors or func in constants)
            ):
                self._made[id(made)] = (made, func, args, kwargs)
            return made

        def _value(self, tensor: Any) -> Any:
            if id(tensor) not in self._values:
                _, func, args, kwargs = self._made[id(tensor)]
                args, kwargs = pytree.tree_map(self._replaced, (args, kwargs))
                with _disable_current_modes(), torch._C.DisableTorchFunction():
                    self._values[id(tensor)] = func(*args, **kwargs)
            return self._values[id(tensor)]

        def _replaced(self, item: Any) -> Any:
            if isinstance(item, torch.Tensor):
                return self._value(item)
            return torch.device("cpu") if isinstance(item, torch.device) else item

    return Known()
