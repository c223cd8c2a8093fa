"""What a composite operator is made of: the graph of the operators that its own code calls.

An operator that ATen writes in terms of others (CompositeImplicitAutograd: einsum, tensordot,
multi_dot) runs these, so a trace has them. An operator with kernels of its own is taken apart only
where torch decomposes it into products; what else it decomposes into is one kernel when it runs.

Beside the calls, torch copies operands whose layout a product's kernel cannot read. `matmul` of
operands with several leading dimensions is a `bmm` of one: each operand is expanded to the common
leading dimensions and reshaped (ATen/native/LinearAlgebra.cpp, `_matmul_impl`). The reshape is a
view where the strides allow one, and else a copy: heads that lie beside each other in the rows of a
token are copied apart.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution")


def decomposed(node: Any, name: str, known: MutableMapping[Any, Any]) -> Any:
    """The graph module that a node's operator, called `name`, runs; None where it is one kernel.

    Its placeholders are the nodes among the arguments, in their order. `known` keeps the answers,
    by operator and arguments.
    """
    from torch.utils import _pytree as pytree

    leaves, _ = pytree.tree_flatten((node.args, node.kwargs))
    key = (node.target, *(_signature(leaf) for leaf in leaves))
    if key not in known:
        known[key] = _body(node, name)
    return known[key]


def _signature(leaf: Any) -> Any:
    value: Any = leaf.meta.get("val") if hasattr(leaf, "meta") else None
    if not hasattr(value, "stride"):
        return repr(leaf)
    return tuple(value.shape), value.stride(), value.dtype


def _body(node: Any, name: str) -> Any:
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    values = [leaf.meta.get("val") for leaf in leaves if hasattr(leaf, "meta")]
    batched = torch._C._functorch.is_batchedtensor
    if not values or any(not isinstance(x, torch.Tensor) or batched(x) for x in values):
        return None
    run: Callable[..., Any] | None = _OWN.get(name, getattr(node.target, "decompose", None))
    if run is None:
        return None
    function = run if name in _OWN else node.target

    def call(*tensors: Any) -> Any:
        rest = iter(tensors)
        arguments = [next(rest) if hasattr(leaf, "meta") else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(arguments, spec)
        return function(*args, **kwargs)

    composite = name in _OWN or _is_composite(node.target)
    table = {} if composite else torch._decomp.core_aten_decompositions()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = make_fx(call, decomposition_table=table)(*values)
    except Exception:  # whatever an operator's code needs that shapes do not say
        return None
    targets = {item.target for item in body.graph.nodes if item.op == "call_function"}
    names = {getattr(getattr(x, "overloadpacket", None), "__name__", "") for x in targets}
    is_split = node.target not in targets and (composite or names & {*_PRODUCTS})
    return body if is_split else None


def _is_composite(target: Any) -> bool:
    """Whether the operator has no kernel, and code in terms of other operators."""
    import torch

    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(target.has_kernel_for_dispatch_key(key))


def _addbmm(total: Any, batch1: Any, batch2: Any, **_: Any) -> Any:
    """A product after the other, each added to the sum (ATen/native/LinearAlgebra.cpp)."""
    import torch

    for left, right in zip(batch1, batch2, strict=True):
        total = torch.addmm(total, left, right)
    return total


def _bilinear(left: Any, right: Any, weight: Any, bias: Any = None) -> Any:
    """First the left input with the weights, then with the right one (`at::_trilinear`)."""
    import torch

    product = torch.einsum("...i,oij->...oj", left, weight)
    product = torch.matmul(product, right.unsqueeze(-1)).squeeze(-1)
    return product if bias is None else product + bias


def _conv_tbc(image: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution along time, which is the first dimension."""
    import torch

    out = torch.conv1d(image.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)


_OWN: dict[str, Callable[..., Any]] = {
    "aten.addbmm": _addbmm,
    "aten.bilinear": _bilinear,
    "aten.conv_tbc": _conv_tbc,
}
"""Operators whose kernels hide products and that torch does not decompose."""


COPY = "aten.clone"
"""The operator of such a copy."""
_NAMES = ("self", "other")


def copied(aten: str, values: Sequence[Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors, of those that an operator is given, that it copies first, and as what shape."""
    if aten != "aten.matmul":
        return
    if any(len(value.shape) < 3 for value in values):  # folded into a product of two matrices
        return
    batch = _broadcast([value.shape[:-2] for value in values])
    for name, value in zip(_NAMES, values, strict=True):
        wide = value.expand(*batch, *value.shape[-2:])
        try:
            wide.view(math.prod(batch), *value.shape[-2:])
        except (RuntimeError, ValueError):
            yield name, tuple(int(n) for n in wide.shape)


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that both broadcast to."""
    rank = max(len(shape) for shape in shapes)
    ranked = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(max(extents) for extents in zip(*ranked, strict=True))
