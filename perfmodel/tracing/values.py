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
