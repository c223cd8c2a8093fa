"""A layer under construction, and the pieces that all of its parts use."""

from __future__ import annotations

from perfmodel.errors import SizeError
from perfmodel.networks.network import Network
from perfmodel.networks.operations.exchange import Exchange, Way, way
from perfmodel.networks.operations.maps import Dropout, Map, Pass
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value


class Layer:
    """Operations of one layer, in order; `x` is what the layer reads."""

    def __init__(self, network: Network, setting: Setting) -> None:
        self.network, self.setting = network, setting
        self.operations: list[Operation] = []
        self.tensor = setting.shards.tensor
        self.tokens = setting.tokens
        split = self.tensor if setting.shards.sequence else 1
        rows = self.share("tokens", self.tokens, split, "tensor")
        self.x = Value("x", rows, network.hidden, setting.data)
        dropout = network.dropout if setting.dropout is None else setting.dropout
        self.drops = setting.training and dropout > 0.0

    def share(self, what: str, count: int, ranks: int, axis: str) -> int:
        """A device's share of `count`. Raises `SizeError` with numbers of ranks by which it
        divides."""
        if count % ranks:
            fits = [n for n in range(1, min(count, 4 * ranks) + 1) if count % n == 0]
            raise SizeError(f"{count:,} {what} do not divide by {axis} {ranks}", {axis: fits})
        return count // ranks

    def add(self, operation: Operation) -> tuple[Value, ...]:
        """Append an operation; returns its outputs."""
        self.operations.append(operation)
        return operation.outputs

    def one(self, operation: Operation) -> Value:
        """Append an operation with one output; returns that."""
        return self.add(operation)[0]

    def value(self, name: str, cols: int) -> Value:
        """A tensor with a row for each token of this device."""
        return Value(name, self.tokens, cols, self.setting.data)

    def norm(self, name: str, x: Value) -> Value:
        """A norm of the network's kind."""
        return self.one(Norm(name, self.setting, x, self.network.norm, self.network.norm_bias))

    def added(self, name: str, x: Value, y: Value) -> Value:
        """Two tensors summed."""
        return self.one(Map(name, self.setting, (x, y), (Pass("add", reads=2),)))

    def residual(self, name: str, made: Value, x: Value) -> Value:
        """Dropout on the output of a part, and the residual sum with the part's input x."""
        stack = self.setting.stack
        if self.drops and (stack.fused_dropout_add or stack.joins_maps):
            return self.one(Dropout(name, self.setting, made, residual=x))
        y = self.one(Dropout(f"{name} dropout", self.setting, made)) if self.drops else made
        return self.added(name, x, y)

    def spread(self, x: Value, name: str) -> Value:
        """Rows gathered from all devices, before products whose columns are split."""
        return self._exchange(x, way("out", sequence=self.setting.shards.sequence), name)

    def joined(self, x: Value, name: str) -> Value:
        """Partial sums reduced over the devices, after products whose rows are split."""
        return self._exchange(x, way("in", sequence=self.setting.shards.sequence), name)

    def _exchange(self, x: Value, way: Way, name: str) -> Value:
        """An exchange among the devices that share the layer; nothing on a single device."""
        if self.tensor == 1:
            return x
        return self.one(Exchange(f"{name} {way}", self.setting, x, way, "tensor", self.tensor))
