"""A KV cache in host memory: how much of it to recompute from activations (KVPR, 2411.17089).

The formulas are in `perfmodel.napkin.recompute`. Here the rate is the device's rate for products of
that size, the link is the device's, and the split is a whole number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.napkin import recompute as formula
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import Network
from perfmodel.networks.setting import Setting
from perfmodel.networks.summary import cached_elements
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.predict import predict

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True)
class Recompute:
    """One layer's cache of `batch` sequences of `tokens` tokens, on a device with a link to its
    host."""

    batch: int
    """Sequences, b."""
    tokens: int
    """Cached tokens of each, s."""
    hidden: int
    """Width of an activation, h."""
    columns: float
    """Elements of a token's keys, w; its values have as many. For a latent cache, half of its
    elements."""
    flops_per_s: float
    """Rate of the products, g."""
    link_bytes_per_s: float
    """Rate of the link, v."""
    cache_width: float = 2.0
    """Bytes of a cached element, q."""
    activation_width: float = _ACTIVATION_BYTES
    """Bytes of an element of the activations, q_x."""
    weight_bytes: float = 0.0
    """Bytes of the layer's weights that cross the link too; 0 where they are resident."""

    def __post_init__(self) -> None:
        for name in ("batch", "tokens", "hidden"):
            if getattr(self, name) < 1:
                raise ProblemError(f"{name} is {getattr(self, name)}; it is 1 or more")

    def tree(self, computed: int) -> Tree:
        """What happens until the layer's keys and values are on the device, with `computed` tokens
        recomputed: their activations are sent, then they are multiplied while the rest is sent.

        Streamed weights share the link with the rest of the cache.
        """
        rows, remainder = self.batch * computed, self.batch * (self.tokens - computed)
        link = self.link_bytes_per_s
        first = formula.activation_seconds(rows, self.hidden, self.activation_width, link)
        product = formula.product_seconds(rows, self.hidden, self.columns, self.flops_per_s)
        rest = formula.cache_seconds(remainder, self.columns, self.cache_width, link)
        rest += self.weight_bytes / link
        lanes = (
            Tree.part("keys and values", "matmul", float(product), resource="matrix"),
            Tree.part("rest of the cache", "communication", float(rest), resource="link"),
        )
        sent = Tree.part("activations", "communication", float(first), resource="link")
        return replace(
            Tree.series("cache", "network", [sent, Tree.beside("layer", "network", lanes)]),
            settings={"batch": self.batch, "context": self.tokens},
        )

    def seconds(self, computed: int) -> float:
        """Seconds of that."""
        return self.tree(computed).seconds

    @property
    def gains(self) -> bool:
        """Whether an activation is smaller than the keys and values computed from it."""
        return bool(
            formula.gains(self.hidden, self.columns, self.activation_width, self.cache_width)
        )

    @property
    def meeting(self) -> float:
        """Tokens at which recomputation takes as long as the link needs for the rest.

        With resident weights this is l*. With weights on the link, recomputation has more time: l =
        (W + 2·b·s·w·q)·g / (2·b·w·(2·h·v + q·g)).
        """
        share = formula.meeting_share(
            self.hidden, self.cache_width, self.flops_per_s, self.link_bytes_per_s
        )
        entry = 2.0 * self.batch * self.columns * self.cache_width
        return min(float(share) * (self.tokens + self.weight_bytes / entry), float(self.tokens))

    @property
    def split(self) -> int:
        """Tokens to recompute: the better whole number next to `meeting`, or none."""
        if not self.gains:
            return 0
        floor = int(self.meeting)
        return min((floor, min(floor + 1, self.tokens)), key=self.seconds)

    @property
    def time_share(self) -> float:
        """Time at the split over the time of sending the whole cache."""
        return self.seconds(self.split) / self.seconds(0)


def of_network(
    network: Network,
    device: Device,
    batch: int,
    tokens: int,
    *,
    kv_dtype: str = "fp16",
    streamed: bool = False,
) -> Recompute:
    """The split for a network's widest kind of layer, on a device with its link.

    The rate is that of products over all tokens. Raises `ProblemError` for a network without a
    cache.
    """
    causal = [block.attention for block in network.blocks if block.attention.causal]
    if not causal:
        raise ProblemError(
            f"{network.name} keeps no keys and values, so there is no cache to split"
        )
    attention = max(causal, key=cached_elements)
    columns = cached_elements(attention) / 2.0
    product = Matmul(batch * tokens, int(2 * columns), network.hidden, dtype="fp16")
    time = predict(product, device)
    weights = _layer_bytes(network) if streamed else 0.0
    return Recompute(
        batch,
        tokens,
        network.hidden,
        columns,
        float(product.flops()) / time.seconds,
        host_bytes_per_s(device),
        element(kv_dtype).bytes,
        weight_bytes=weights,
    )


def _layer_bytes(network: Network) -> float:
    """Bytes of a mean layer's weights at 16 bits."""
    weights = parameters(network, Setting(1, 1, ends=False))
    return 2.0 * sum(weight.elements * repeat for weight, repeat in weights) / network.layers
