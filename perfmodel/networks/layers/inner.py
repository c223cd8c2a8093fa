"""The inner layer of a block: dense, or experts with an optional shared one."""

from __future__ import annotations

from functools import partial

from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.loads import Loads
from perfmodel.networks.network import Mlp
from perfmodel.networks.operations.exchange import Exchange, Way
from perfmodel.networks.operations.experts import Choice, Combine, Permute, busiest, touched
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import activation
from perfmodel.networks.router import Router
from perfmodel.networks.value import Value


def inner(layer: Layer, of: Mlp, x: Value) -> Value:
    """Add the inner layer over x."""
    if not of.experts:
        return _dense_mlp(layer, of, x, of.inner, "mlp")
    shards = layer.setting.shards
    reduced = shards.expert_tensor or shards.expert_inside
    if not of.shared_inner:
        output = _experts(layer, of, x)
        return layer.joined(output, "experts") if reduced else output
    joint = reduced and layer.setting.stack.reduces_experts_once
    output = _experts(layer, of, x)
    if reduced and not joint:
        output = layer.joined(output, "experts")
    shared = _dense_mlp(layer, of, x, of.shared_inner, "shared expert", reduced=not joint)
    if of.shared_gate:
        layer.one(Linear("shared expert weight", layer.setting, x, 1))
    output = layer.added("shared expert sum", output, shared)
    return layer.joined(output, "experts") if joint else output


def _dense_mlp(
    layer: Layer, mlp: Mlp, x: Value, columns: int, name: str, *, reduced: bool = True
) -> Value:
    """Up, activation, down; `reduced`: summed over the devices of `tensor`."""
    x = layer.spread(x, name)
    share = layer.share("columns of the inner layer", columns, layer.tensor, "tensor")
    active = _up_products(layer, mlp, x, share, name)
    hidden = layer.network.hidden
    down = Linear(f"{name} down", layer.setting, active, hidden, mlp.bias, split="in")
    output = layer.one(down)
    return layer.joined(output, name) if reduced else output


def _up_products(
    layer: Layer,
    mlp: Mlp,
    x: Value,
    columns: int,
    name: str,
    groups: int = 1,
    owned: int = 0,
    chosen: int = 0,
) -> Value:
    """The up products and their activation; `owned` and `chosen` count the experts."""
    setting = layer.setting
    product = partial(
        Linear, setting=setting, x=x, bias=mlp.bias, split="out", groups=groups, owned=owned,
        chosen=chosen,
    )  # fmt: skip
    up = Value(f"{name} up.out", x.rows, columns, x.dtype)
    gate = Value(f"{name} gate.out", x.rows, columns, x.dtype)
    if not mlp.gated:
        layer.add(product(name=f"{name} up", out=columns, to=(up,)))
    elif setting.stack.joined_products or chosen:
        layer.add(product(name=f"{name} gate and up", out=2 * columns, to=(gate, up)))
    else:
        layer.add(product(name=f"{name} gate", out=columns, to=(gate,)))
        layer.add(product(name=f"{name} up", out=columns, to=(up,)))
    factor = gate if mlp.gated else None
    return layer.one(activation(f"{name} activation", setting, up, mlp.activation, factor))


def _experts(layer: Layer, mlp: Mlp, x: Value) -> Value:
    """Router, permutation to the experts, grouped products, and the sum back into tokens, which
    the devices of `tensor` still have to add up."""
    setting, shards = layer.setting, layer.setting.shards
    split = layer.tensor if shards.expert_tensor else 1
    ranks = shards.expert
    if shards.expert_inside:
        split, ranks = layer.share("devices of tensor", layer.tensor, shards.expert, "expert"), 1
    if shards.expert_tensor or shards.expert_inside:
        x = layer.spread(x, "experts")
    slots = mlp.experts + shards.redundant
    local = layer.share("experts", slots, shards.expert, "expert")
    columns = layer.share("columns of an expert", mlp.inner, split, "tensor")
    router = Linear("router", setting, x, mlp.experts, mlp.router_bias, dtype=setting.data)
    weights = layer.one(Choice("choice", setting, layer.one(router)))
    experts, expert_rows = _rows(setting.loads, mlp, x.rows, ranks, local, slots)
    gathers = setting.stack.gathers_tokens
    if gathers:
        x = _exchange(layer, x, "gather", ranks)
    rows = layer.one(Permute("permute", setting, x, experts * expert_rows))
    routed = Router(mlp.chosen, mlp.groups, mlp.chosen_groups)
    if not gathers:
        rows = _exchange(layer, rows, "dispatch", ranks, routed)
    active = _up_products(layer, mlp, rows, columns, "experts", experts, local, mlp.chosen)
    down = Linear(
        "experts down", setting, active, layer.network.hidden, mlp.bias, split="in", groups=experts,
        owned=local, chosen=mlp.chosen,
    )  # fmt: skip
    output = layer.one(down)
    if not gathers:
        output = _exchange(layer, output, "collect", ranks, routed)
    output = layer.one(Combine("combine", setting, output, weights, x.rows))
    return _exchange(layer, output, "scatter", ranks) if gathers else output


def _exchange(layer: Layer, x: Value, way: Way, ranks: int, router: Router | None = None) -> Value:
    """Exchange of tokens or their rows among the devices that share experts."""
    if ranks == 1:
        return x
    name = f"experts {way}"
    return layer.one(Exchange(name, layer.setting, x, way, "expert", ranks, router=router))


def _rows(
    loads: Loads, mlp: Mlp, tokens: int, ranks: int, local: int, slots: int
) -> tuple[int, int]:
    """Experts that receive rows on the device with the most of them, which the others wait for, and
    rows of each. Rows are an even share of all devices' tokens, times `imbalance` (fullest expert
    over mean). Second copies are of the fullest experts (DeepSeek, EPLB), which halves their rows:
    over the mean of all `slots` the fullest then has imbalance · slots / 2 experts, or the mean.
    Uneven `loads` say the busiest device's rows themselves."""
    if not loads.even:
        return loads.busiest(tokens * mlp.chosen * ranks, slots, slots // local, mlp.chosen)
    shared_out = slots / (2.0 * mlp.experts) if slots > mlp.experts else 1.0
    fullest = max(mlp.imbalance * shared_out, 1.0)
    total = tokens * mlp.chosen * ranks * fullest
    hits = touched(slots, mlp.chosen, tokens * ranks)
    experts = min(local, max(round(busiest(slots, hits, slots // local)), 1))
    if experts == local:
        return experts, max(int(-(-total // slots)), 1)
    return experts, max(round(total * local / slots / experts), 1)
