"""`perfmodel network NAME -d DEVICE`: the time of a pass over a network, and its breakdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from perfmodel.cli import known, ranges, spellings
from perfmodel.cli.arguments import Devices, NetworkName
from perfmodel.cli.build import Values, asking_for
from perfmodel.cli.leftout import possible
from perfmodel.cli.output import Format, Output, chosen_format, emit, say
from perfmodel.cli.progress import waiting
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.network import Network
from perfmodel.networks.predict import predict_network
from perfmodel.networks.prediction import NetworkPrediction
from perfmodel.networks.setting import Setting
from perfmodel.plaintext import quoted
from perfmodel.render import networks as render
from perfmodel.units import binary

PASSES = ("forward", "train", "prefill", "decode")
"""Kinds of pass. forward: logits of all tokens. train: forward and backward. prefill: a prompt,
with the last token's logits. decode: one token after `seq` cached ones."""

Seq = Annotated[
    str,
    typer.Option(
        "--seq",
        metavar="TOKENS",
        help="Tokens of a sequence; with --pass decode, tokens in the KV cache.",
    ),
]
Batch = Annotated[str, typer.Option("--batch", metavar="N", help="Number of sequences.")]


@asking_for(
    Setting,
    without=("batch", "seq", "past", "training", "dropout", "loss", "ends", "logits", "shards"),
)
def predict(
    network: NetworkName,
    *,
    device: Devices,
    batch: Batch = "1",
    seq: Seq = "2k",
    pass_: Annotated[
        str, typer.Option("--pass", metavar="PASS", help=f"One of {', '.join(PASSES)}.")
    ] = "forward",
    values: Values,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help=f"A line a {', '.join(render.BY)}.")
    ] = "class",
    chart: Annotated[
        str | None,
        typer.Option(
            "--chart",
            metavar="FILE",
            help="Roofline chart with a point for each class (.svg, .pdf, .png).",
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict a pass over a whole network: time by class, layer or operator, host included.

    \b
    perfmodel network llama-3-8b -d h100-sxm --batch 8 --seq 4k --pass forward
    perfmodel network bert-large -d v100-sxm2 --pass train --batch 32 --seq 128 --by class
    """
    form = chosen_format(format, output)
    known.named("line of a network", by, render.BY)
    known.named("pass", pass_, PASSES)
    net = spellings.network(network)
    setting = _setting(pass_, _int(batch, "--batch"), _int(seq, "--seq"), values())
    devices = known.devices(device)
    with waiting("predicting kernels"):
        answers = possible(
            (target.slug, partial(predict_network, net, setting, target)) for target in devices
        )
    if chart is not None:
        _draw(net, answers, chart)
    report = render.data(answers) if form == "json" else render.report(answers, by, pass_)
    emit(report, format, output)
    for target in devices:
        _warn_of_room(net, setting, target)


def _warn_of_room(network: Network, setting: Setting, device: Device) -> None:
    """Say where the weights alone are more than a device holds."""
    weights = parameter_count(network) * element(setting.data).bytes
    if device.memory_bytes is not None and weights > device.memory_bytes:
        say(
            f"perfmodel: the weights of {network.name} take {binary(weights)}, {device.slug} has "
            f"{binary(device.memory_bytes)}: timed as if they fitted (perfmodel hold)"
        )


def _setting(pass_: str, batch: int, seq: int, values: Mapping[str, Sequence[Any]]) -> Setting:
    decode = pass_ == "decode"
    return Setting(
        batch=batch,
        seq=1 if decode else seq,
        past=seq if decode else 0,
        training=pass_ == "train",
        logits="last" if pass_ in ("prefill", "decode") else "all",
        **{name: value for name, (value,) in values.items()},
    )


def _int(text: str, option: str) -> int:
    values = ranges.read(text, option)
    if len(values) != 1:
        raise ProblemError(f"{option} takes one size here, not {quoted(text)}; choose one")
    return int(values.array[0])


def _draw(network: Network, predictions: Sequence[NetworkPrediction], path: str) -> None:
    """A point for each class that computes, on each device."""
    from perfmodel.render.chart import chart_suffix, save
    from perfmodel.render.roofline import roofline_chart
    from perfmodel.render.roofs import roofs

    chart_suffix(path)
    lines = [roofs(load(p.device), [p.setting.dtype]) for p in predictions]
    points = [point for p in predictions for point in render.points(p)]
    setting = predictions[0].setting
    title = f"{network.name}, batch {setting.batch}, {setting.seq} tokens, by class"
    save(roofline_chart(lines, points, title=title), path)
    say(f"wrote {path}")
