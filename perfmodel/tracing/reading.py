"""The nodes of an exported program as operations, in their order; views are left out."""

from __future__ import annotations

import operator as python
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perfmodel.tracing import decomposing
from perfmodel.tracing.decomposing import decomposed
from perfmodel.tracing.lowering import JOINS
from perfmodel.tracing.maps import CONSTANTS
from perfmodel.tracing.module import TraceError
from perfmodel.tracing.operation import Operand, Operation, operand
from perfmodel.tracing.registry import Call, is_known, lowered

# Operators that only look at a tensor otherwise; `reshape` and `contiguous` do where they can.
VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view", "_unsafe_view", "transpose", "t", "permute", "expand", "expand_as", "unsqueeze",
        "squeeze", "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "narrow",
        "movedim", "swapaxes", "unflatten", "alias", "detach", "view_as", "diagonal",
        "lift_fresh", "mT", "numpy_T", "adjoint", "unfold", "as_strided", "view_as_real",
        "view_as_complex", "real", "imag", "tensor_split", "broadcast_to", "atleast_2d", "ravel",
    )
) | {"_add_batch_dim", "_remove_batch_dim"}  # fmt: skip
_PERHAPS = frozenset({"aten.reshape", "aten.contiguous", "aten.reshape_as", "aten.flatten"})


@dataclass
class Reading:
    """What an exported program consists of."""

    operations: list[Operation] = field(default_factory=list)
    """In launch order."""
    parameters: dict[str, Operand] = field(default_factory=dict)
    """Parameters and buffers, by the names of their placeholders."""
    buffers: set[str] = field(default_factory=set)
    """Of these those without a gradient."""
    inputs: dict[str, Operand] = field(default_factory=dict)
    """What the caller gives."""
    outputs: list[Operand] = field(default_factory=list)
    """What it returns."""
    overwritten: dict[str, Operand] = field(default_factory=dict)
    """Tensors that an operation has written in place, in a part or whole, as large as they are."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators that nothing is known of, with how often they were met."""
    calls: int = 0
    """Calls of operators, composite ones as those that they are made of."""
    views: int = 0
    """Of these, calls that cost nothing."""
    copies: int = 0
    """Operations that are no call of their own: copies that torch makes for a product."""


def read(program: Any) -> Reading:
    """The operations of an exported program (torch.export.ExportedProgram)."""
    reader = _Reader(program)
    for node in program.graph.nodes:
        reader.take(node)
    return reader.found


class _Reader:
    """One pass over the nodes; every node is known by the tensor in memory that it lies in."""

    def __init__(self, program: Any) -> None:
        signature = program.graph_signature
        self._weights: Mapping[str, str] = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._buffers = {*signature.inputs_to_buffers, *signature.inputs_to_lifted_tensor_constants}
        self._state: Mapping[str, Any] = program.state_dict
        self._first: dict[int, str] = {}  # a parameter's tensor to its first placeholder
        self._lies_in: dict[Any, str] = {}
        self._whole: dict[str, Operand] = {}  # tensors in memory, as large as they are
        self._returned: dict[Any, list[str]] = {}  # what regions return
        self._region = ""
        self._caller = ""  # the module that calls a composite operator
        self._bodies: dict[Any, Any] = {}  # what composite operators decompose into
        self.found = Reading()

    def take(self, node: Any) -> None:
        """One node."""
        if node.op == "placeholder":
            self._placeholder(node)
        elif node.op == "call_function":
            self._function(node)
        elif node.op == "output":
            for item in _flat(node.args[0]):
                if hasattr(item, "meta") and hasattr(_value(item), "stride"):
                    self.found.outputs.append(self._operand(item))

    def _placeholder(self, node: Any) -> None:
        value = _value(node)
        if not hasattr(value, "stride"):
            return
        tensor = self._whole[node.name] = operand(node.name, value)
        if node.name not in self._weights:
            self.found.inputs[node.name] = tensor
            self._lies_in[node] = node.name
            return
        weight = self._state.get(self._weights[node.name])
        home = self._first.setdefault(id(weight), node.name) if weight is not None else node.name
        self._lies_in[node] = home
        if home != node.name:  # tied to another one
            return
        self.found.parameters[node.name] = tensor
        if node.name in self._buffers:
            self.found.buffers.add(node.name)

    def _function(self, node: Any) -> None:
        if node.target is python.getitem:
            self._getitem(node)
            return
        region = _region(node)
        if region is not None:
            self._body(node, *region)
            return
        name = _name(node.target)
        values = [value for value in _flat(_value(node)) if hasattr(value, "stride")]
        _check_sizes(node, name, values)
        call = self._call(node, name, values)
        if name not in VIEWS | _PERHAPS and not is_known(call):
            body = decomposed(node, name, self._bodies)
            if body is not None:
                self._composite(node, call, body)
                return
        self.found.calls += 1
        targets = _targets(node)
        if not any(value.numel() for value in (*values, *map(_value, targets))):
            # A size, an assertion, a tensor without elements.
            self.found.views += 1
            return
        if name in VIEWS or (name in _PERHAPS and (_views(node) or self._joins_heads(node))):
            self._look(node)
            return
        if not values:
            pairs = zip(targets, _outputs(call.name, len(targets)), strict=True)
            call = replace(call, outputs=tuple(operand(output, _value(x)) for x, output in pairs))
        if name not in JOINS and _lacks_elements(node):
            operations = [call.by_bytes()]
        else:
            call = self._copied_call(node, call)
            operations = lowered(call)
        if not is_known(call):
            self.found.unknown[name] += 1
        if not operations:
            self._look(node)
            return
        self._lies_in[node] = call.name
        self._whole |= {x.tensor: x for x in call.outputs}
        self.found.operations += operations
        if len(targets) == len(call.outputs):
            for item, output in zip(targets, call.outputs, strict=True):
                self._overwrite(item, output.tensor)

    def _composite(self, node: Any, call: Call, body: Any) -> None:
        """An operator as those that it is made of."""
        caller, self._caller = self._caller, call.module
        self._body(node, body, [x for x in _flat([node.args, node.kwargs]) if hasattr(x, "meta")])
        self._caller = caller
        if hasattr(_value(node), "stride"):
            (self._lies_in[node],) = self._returned.pop(node)

    def _body(self, node: Any, body: Any, arguments: list[Any]) -> None:
        """A region that runs as a part of the graph: autocast, checkpointing."""
        region, self._region = self._region, f"{self._region}{node.name}."
        sources = iter(arguments)
        for item in body.graph.nodes:
            if item.op == "placeholder":
                source = next(sources)
                if source in self._lies_in:
                    self._lies_in[item] = self._lies_in[source]
            elif item.op == "call_function":
                self._function(item)
            elif item.op == "output":
                self._returned[node] = [self._home(x) for x in _flat(item.args[0])]
        self._region = region

    def _overwrite(self, node: Any, tensor: str) -> None:
        """What lies where a node lies is from now on what an operation has written there."""
        home = self._home(node)
        previous = self._whole.get(home)
        if previous is not None:
            self._whole[tensor] = self.found.overwritten[tensor] = replace(previous, tensor=tensor)
        for alias in [n for n, at in self._lies_in.items() if at == home]:
            self._lies_in[alias] = tensor

    def _home(self, node: Any) -> str:
        """The tensor in memory that a node lies in."""
        return self._lies_in.get(node) or f"{self._region}{node}"

    def _look(self, node: Any) -> None:
        """A node that lies where its first tensor lies; a constant lies in memory as inputs do."""
        self.found.views += 1
        nodes = (
            x
            for x in _flat(node.args)
            if hasattr(x, "meta") and _name(node.target) not in CONSTANTS
        )
        source = next((item for item in nodes if item in self._lies_in), None)
        home = self._lies_in[node] = self._home(node if source is None else source)
        if source is None and hasattr(_value(node), "stride"):
            self._whole[home] = operand(home, _value(node))

    def _joins_heads(self, node: Any) -> bool:
        """Whether it joins the heads of attention's result: kernels write heads beside each other
        ([batch, seq, heads, dim]), whatever the meta device says of it.
        """
        home = self._lies_in.get(node.args[0])
        operations = self.found.operations
        kinds = (item.kind for item in operations if any(x.tensor == home for x in item.writes))
        return next(kinds, "") == "attention"

    def _copied_call(self, node: Any, call: Call) -> Call:
        """The call with copies of the operands that its kernel cannot read as they lie."""
        for name, shape in decomposing.copied(
            call.aten, [_value(x) for x in node.args if hasattr(x, "meta")]
        ):
            source = call[name]
            target = Operand(f"{call.name}.{name}", shape, source.dtype, floating=source.floating)
            copy = Call(target.tensor, decomposing.COPY, call.module, {"self": source}, (target,))
            self.found.operations += lowered(copy)
            self.found.copies += 1
            call = replace(call, given={**call.given, name: target})
        return call

    def _getitem(self, node: Any) -> None:
        """One of several results: a view of what was split, or an output of its own."""
        source, index = node.args
        if source in self._returned:
            self._lies_in[node] = self._returned[source][index]
            return
        home = self._lies_in.get(source)
        if home == f"{self._region}{source.name}":
            self._lies_in[node] = _output(home, index)
        elif home is not None:
            self._lies_in[node] = home

    def _operand(self, node: Any) -> Operand:
        return operand(self._home(node), _value(node))

    def _call(self, node: Any, name: str, values: list[Any]) -> Call:
        arguments = getattr(node.target, "_schema", None)
        names = [item.name for item in arguments.arguments] if arguments is not None else []
        inputs = dict(zip(names, node.args, strict=False)) if names else {}
        inputs |= {f"argument {i}": value for i, value in enumerate(node.args[len(inputs) :])}
        inputs |= dict(node.kwargs)
        label = f"{self._region}{node.name}"
        pairs = zip(_outputs(label, len(values)), values, strict=True)
        outputs = tuple(operand(tensor, value) for tensor, value in pairs)
        return Call(
            label,
            name,
            _module(node) or self._caller,
            {key: self._argument(value) for key, value in inputs.items()},
            outputs,
            _is_pointwise(node.target),
        )

    def _argument(self, value: Any) -> Any:
        """An argument with tensors as operands; those that cost nothing to make are left out, as
        are those without elements."""
        if isinstance(value, list | tuple):
            return [self._argument(item) for item in value]
        if not hasattr(value, "meta"):
            return value
        if value not in self._lies_in or not hasattr(_value(value), "stride"):
            return None
        return self._operand(value) if _value(value).numel() else None


def _value(node: Any) -> Any:
    """What a node makes, as torch's meta device has it; within `vmap` the whole of it."""
    import torch

    functorch = torch._C._functorch
    value = node.meta.get("val")
    while isinstance(value, torch.Tensor) and functorch.is_batchedtensor(value):
        value = functorch.get_unwrapped(value)
    return value


def _check_sizes(node: Any, name: str, values: list[Any]) -> None:
    """Refuse a result whose size depends on the values of a tensor."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if any(free_unbacked_symbols(value) for value in values):
        place = f" of {_module(node)}" if _module(node) else ""
        raise TraceError(
            f"the size of what {name}{place} makes depends on values, and a trace has only shapes; "
            "give it a fixed size, or leave it out of what is traced"
        )


def _region(node: Any) -> tuple[Any, list[Any]] | None:
    """The graph that an operator runs as a part of this one, and what it is given; None where an
    operator has none, or chooses between several.
    """
    bodies = [x for x in node.args if getattr(x, "op", "") == "get_attr"]
    if len(bodies) != 1:
        return None
    body: Any = getattr(node.graph.owning_module, bodies[0].target, None)
    if not hasattr(body, "graph"):
        return None
    inputs = [x for x in node.args if hasattr(x, "op") and x is not bodies[0]]
    count = sum(item.op == "placeholder" for item in body.graph.nodes)
    return (body, inputs) if count == len(inputs) else None


def _lacks_elements(node: Any) -> bool:
    """Whether an argument is a tensor without elements.

    No kernel's sizes fit such a call: a product over no k, or a sum over nothing, is a fill.
    """
    values = (_value(x) for x in _flat([node.args, node.kwargs]) if hasattr(x, "meta"))
    return any(hasattr(value, "stride") and not value.numel() for value in values)


def _targets(node: Any) -> list[Any]:
    """The tensors that an operator writes in place."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    names = {item.name for item in schema.arguments if item.alias_info and item.alias_info.is_write}
    pairs = zip((item.name for item in schema.arguments), node.args, strict=False)
    return [x for name, x in (*pairs, *node.kwargs.items()) if name in names and hasattr(x, "meta")]


def _output(name: str, index: int) -> str:
    """The tensor that is one of several outputs."""
    return f"{name}.{index}"


def _outputs(name: str, count: int) -> list[str]:
    """The tensors that an operator makes."""
    return [name] if count == 1 else [_output(name, i) for i in range(count)]


def _name(target: Any) -> str:
    """Namespace and name of an operator, in-place ones as those that make something new."""
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return str(getattr(target, "__name__", target))
    namespace = str(getattr(target, "namespace", "aten"))
    name = str(packet.__name__)
    in_place = namespace == "aten" and name.endswith("_") and not name.startswith("_")
    return f"{namespace}.{name.removesuffix('_') if in_place else name}"


def _module(node: Any) -> str:
    """Path of the innermost module that a node belongs to; empty for the outermost."""
    stack = node.meta.get("nn_module_stack") or {}
    return str(next(reversed(stack.values()))[0]) if stack else ""


def _is_pointwise(target: Any) -> bool:
    import torch

    return torch.Tag.pointwise in getattr(target, "tags", ())


def _views(node: Any) -> bool:
    """Whether a reshape or the like needs no copy: torch itself says whether a view can be made."""
    source, view = _value(node.args[0]), _value(node)
    if node.target.overloadpacket.__name__ == "contiguous":
        return bool(source.is_contiguous())
    try:
        source.view(view.shape)
    except (RuntimeError, ValueError):
        return False
    return True


def _flat(value: Any) -> list[Any]:
    """What is in nested lists and tuples."""
    if isinstance(value, list | tuple):
        return [item for each in value for item in _flat(each)]
    if isinstance(value, dict):
        return [item for each in value.values() for item in _flat(each)]
    return [value]
