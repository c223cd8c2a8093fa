"""The inner layer of a block: dense, or experts with an optional shared one."""

from __future__ import annotations

from functools import partial

from perfmodel.collectives.dispatch import Router
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import Mlp
from perfmodel.networks.operations.exchange import Exchange, Way
from perfmodel.networks.operations.experts import Choice, Combine, Permute, busiest, touched
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import activation
from perfmodel.networks.value import Value


def inner(layer: Layer, of: Mlp, x: Value) -> Value:
    """Add the inner layer over x."""
    if not of.experts:
        return _dense(layer, of, x, of.inner, "mlp")
    shards = layer.setting.shards
    reduced = shards.expert_tensor or shards.expert_inside
    if not of.shared_inner:
        made = _experts(layer, of, x)
        return layer.joined(made, "experts") if reduced else made
    once = reduced and layer.setting.stack.reduces_experts_once
    made = _experts(layer, of, x)
    if reduced and not once:
        made = layer.joined(made, "experts")
    beside = _dense(layer, of, x, of.shared_inner, "shared expert", reduced=not once)
    if of.shared_gate:
        layer.one(Linear("shared expert weight", layer.setting, x, 1))
    made = layer.added("shared expert sum", made, beside)
    return layer.joined(made, "experts") if once else made


def _dense(
    layer: Layer, of: Mlp, x: Value, columns: int, name: str, *, reduced: bool = True
) -> Value:
    """Up, activation, down; `reduced`: summed over the devices of `tensor`."""
    x = layer.spread(x, name)
    mine = layer.share("columns of the inner layer", columns, layer.tensor, "tensor")
    active = _up(layer, of, x, mine, name)
    hidden = layer.network.hidden
    down = Linear(f"{name} down", layer.setting, active, hidden, of.bias, split="in")
    made = layer.one(down)
    return layer.joined(made, name) if reduced else made


def _up(
    layer: Layer,
    of: Mlp,
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
        Linear, setting=setting, x=x, bias=of.bias, split="out", groups=groups, owned=owned,
        chosen=chosen,
    )  # fmt: skip
    up = Value(f"{name} up.out", x.rows, columns, x.dtype)
    gate = Value(f"{name} gate.out", x.rows, columns, x.dtype)
    if not of.gated:
        layer.add(product(name=f"{name} up", out=columns, to=(up,)))
    elif setting.stack.joined_products or chosen:
        layer.add(product(name=f"{name} gate and up", out=2 * columns, to=(gate, up)))
    else:
        layer.add(product(name=f"{name} gate", out=columns, to=(gate,)))
        layer.add(product(name=f"{name} up", out=columns, to=(up,)))
    by = gate if of.gated else None
    return layer.one(activation(f"{name} activation", setting, up, of.activation, by))


def _experts(layer: Layer, of: Mlp, x: Value) -> Value:
    """Router, permutation to the experts, grouped products, and the sum back into tokens, which
    the devices of `tensor` still have to add up."""
    setting, shards = layer.setting, layer.setting.shards
    split = layer.tensor if shards.expert_tensor else 1
    ranks = shards.expert
    if shards.expert_inside:
        split, ranks = layer.tensor // shards.expert, 1
    if shards.expert_tensor or shards.expert_inside:
        x = layer.spread(x, "experts")
    local = layer.share("experts", of.experts, shards.expert, "expert")
    columns = layer.share("columns of an expert", of.inner, split, "tensor")
    router = Linear("router", setting, x, of.experts, of.router_bias, dtype=setting.data)
    weights = layer.one(Choice("choice", setting, layer.one(router)))
    used, each = _rows(of, x.rows, ranks, local)
    rows = layer.one(Permute("permute", setting, x, used * each))
    rows = _sent(layer, of, rows, "dispatch", ranks)
    active = _up(layer, of, rows, columns, "experts", used, local, of.chosen)
    down = Linear(
        "experts down", setting, active, layer.network.hidden, of.bias, split="in", groups=used,
        owned=local, chosen=of.chosen,
    )  # fmt: skip
    made = _sent(layer, of, layer.one(down), "collect", ranks)
    return layer.one(Combine("combine", setting, made, weights, x.rows))


def _sent(layer: Layer, of: Mlp, x: Value, how: Way, ranks: int) -> Value:
    """Exchange of rows with the devices of their experts, out or back."""
    if ranks == 1:
        return x
    name = f"experts {how}"
    router = Router(of.chosen, of.groups, of.chosen_groups)
    return layer.one(Exchange(name, layer.setting, x, how, "expert", ranks, router=router))


def _rows(of: Mlp, tokens: int, ranks: int, local: int) -> tuple[int, int]:
    """Experts that receive rows on the device with the most of them, which the others wait for, and
    rows of each. Rows are an even share of all devices' tokens, times `capacity` (fullest expert
    over mean)."""
    sent = tokens * of.chosen * ranks * of.capacity
    met = touched(of.experts, of.chosen, tokens * ranks)
    used = min(local, max(round(busiest(of.experts, met, of.experts // local)), 1))
    if used == local:
        return used, max(int(-(-sent // of.experts)), 1)
    return used, max(round(sent * local / of.experts / used), 1)
