"""`perfmodel network list | show | import | NAME`: whole transformers, and passes over them.

Any other first word is the name of a network: `perfmodel network llama-3-8b ...` is the command
`predict` of this group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import click

from perfmodel.cli import spellings
from perfmodel.cli.arguments import Corrected, Devices, TypeName
from perfmodel.cli.build import Group, Values, asking_for
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.leftout import possible
from perfmodel.cli.networkoptions import NamedNetwork
from perfmodel.cli.output import Format, Output, Shown, say, write
from perfmodel.cli.progress import waiting
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import PASS, FieldOption
from perfmodel.networks import huggingface, library, reading
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.setting import Setting
from perfmodel.render import Report, networkparts, trees
from perfmodel.units import binary

PASSES = ("forward", "train", "prefill", "decode")
"""Kinds of pass. forward: logits of all tokens. train: forward and backward. prefill: a prompt,
with the last token's logits. decode: one token after `seq` cached ones."""
_SEQ = 4096
_HELP = """List, show and import transformers: published ones by name, yours as YAML or config.json.

A network's name and a device predict a pass over it (perfmodel network predict --help).

\b
    perfmodel network llama-3-8b -d h100-sxm --batch 8 --seq 4k --pass train --by class
    perfmodel network list --family llama
    perfmodel network show llama-3-8b
    perfmodel network import config.json -o my.yaml
"""


class Networks(Group):
    """A group that takes a network's name in place of a command."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """`perfmodel network NAME ...` runs `perfmodel network predict NAME ...`."""
        if args and args[0] not in self.commands:
            args = ["predict", *args]
        return super().resolve_command(ctx, args)


app = Networks(help=_HELP)


@dataclass(frozen=True)
class Pass(Corrected):
    """A pass over a network, and what is shown of it."""

    network: NamedNetwork
    """The network."""
    device: Devices
    """The devices."""
    batch: Annotated[int, FieldOption(PASS, single=True)] = 1
    """Number of sequences."""
    seq: Annotated[int, FieldOption(PASS, "TOKENS", single=True)] = 2048
    """Tokens of a sequence; with --pass decode, tokens in the KV cache."""
    pass_: Annotated[str, FieldOption(None, "PASS", single=True, names=PASSES)] = "forward"
    """Kind of pass."""
    by: Annotated[str, FieldOption(None, "WHAT", single=True, names=trees.OF_NETWORKS)] = "class"
    """What has a line."""

    def setting(self, **fields: Any) -> Setting:
        """The options of the pass."""
        decode = self.pass_ == "decode"
        return Setting(
            batch=self.batch,
            seq=1 if decode else self.seq,
            past=self.seq if decode else 0,
            training=self.pass_ == "train",
            logits="last" if self.pass_ in ("prefill", "decode") else "all",
            **fields,
        )


Classes = Annotated[
    Drawing, {"chart": "Roofline chart with a point for each class (.svg, .pdf, .png)."}
]


@app.command("predict")
@asking_for(
    Setting,
    without=(
        "batch", "seq", "past", "training", "dropout", "loss", "ends", "logits", "shards", "loads",
        "tuning", "stored", "gradients",
    ),
)  # fmt: skip
def predict(asked: Pass, values: Values, shown: Shown, drawing: Classes) -> None:
    """Predict a pass over a whole network: time by class, layer or operator, host included.

    \b
    perfmodel network llama-3-8b -d h100-sxm --batch 8 --seq 4k --pass forward
    perfmodel network bert-large -d v100-sxm2 --pass train --batch 32 --seq 128 --by class
    """
    network = asked.network
    setting = asked.setting(**{name: value for name, (value,) in values().items()})
    with waiting("predicting kernels"):
        answers = possible(
            (device.slug, partial(predict_network, network, setting, device))
            for device in asked.device
        )
    if drawing.chart is not None:
        from perfmodel.render.roofline import roofline_chart
        from perfmodel.render.roofs import roofs

        devices = {device.slug: device for device in asked.device}
        lines = [roofs(devices[each.device], [setting.dtype]) for each in answers]
        points = [point for each in answers for point in trees.points(each)]
        title = f"{network.name}, batch {setting.batch}, {setting.seq} tokens, by class"
        drawing.draw(lambda page: roofline_chart(lines, points, title=title, page=page))
    answers = [replace(each, settings={**each.settings, "pass": asked.pass_}) for each in answers]
    json = shown.form == "json"
    shown.emit(
        trees.data(answers, "networks") if json else trees.report(answers, asked.by, "networks")
    )
    weights = parameter_count(network) * element(setting.data).bytes
    for device in asked.device:
        if device.memory_bytes is not None and weights > device.memory_bytes:
            say(
                f"perfmodel: the weights of {network.name} take {binary(weights)}, {device.slug} "
                f"has {binary(device.memory_bytes)}: timed as if they fitted (perfmodel hold)"
            )


def _families() -> Iterator[str]:
    return (entry.network.family for entry in library.entries())


@app.command("list")
def list_(
    family: Annotated[
        str | None,
        FieldOption(
            metavar="NAMES",
            names=_families,
            help="Only networks of these families, with commas: llama,qwen3.",
        ),
    ] = None,
) -> Report:
    """List the networks with a name.

    \b
        perfmodel network list --family llama,mixtral
        perfmodel network list --format csv --output networks.csv
    """
    families = {spellings.named("family", name, _families()) for name in spellings.names(family)}
    entries = library.entries()
    return networkparts.listed([e for e in entries if not families or e.network.family in families])


@dataclass(frozen=True)
class Shape:
    """The network to show, and the sequences that its cache and operations are given for."""

    name: NamedNetwork
    """The network."""
    seq: Annotated[int | None, FieldOption(metavar="TOKENS", single=True)] = None
    """Tokens of a sequence [default: 4k, or the network's learned positions if fewer]."""
    kv_dtype: TypeName = "bf16"
    """Type of cached keys and values: bf16, fp16, fp8, fp32 (perfmodel list types)."""
    yaml: bool = False
    """Write the network as a YAML file to start from."""


@app.command("show")
def show(shape: Shape, format: Format = None, output: Output = None) -> None:
    """Show a network: its layers, parameters by part, bytes of a cached token, FLOPs of training.

    \b
        perfmodel network show llama-3-8b
        perfmodel network show deepseek-v3 --seq 8k --kv-dtype fp8
        perfmodel network show mixtral-8x7b --yaml -o my.yaml
    """
    if shape.yaml and format is not None:
        raise ProblemError("--yaml is a format of its own; drop --format")
    if shape.yaml:
        write(iter([reading.text(shape.name)]), output)
        return
    printer, positions = Shown(format, output), shape.name.positions
    if shape.seq is not None and 0 < positions < shape.seq:
        raise ProblemError(
            f"--seq {shape.seq:,}: there are {positions:,} learned positions; give fewer"
        )
    tokens = shape.seq or min(positions or _SEQ, _SEQ)
    printer.emit(networkparts.report(shape.name, tokens, shape.kv_dtype))


@dataclass(frozen=True)
class Config:
    """The file to import, and what it does not say."""

    file: Annotated[str, FieldOption(metavar="FILE", argument=True)]
    """A config.json of Hugging Face."""
    family: Annotated[str | None, FieldOption(metavar="NAME", names=_families)] = None
    """Family whose code it follows: llama, qwen3, ... [default: by its model_type]."""
    name: Annotated[str, FieldOption(metavar="NAME")] = ""
    """Name of the network [default: by the file]."""
    output: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o"))] = None
    """YAML file to write."""


@app.command("import")
def import_(config: Config) -> None:
    """Write the network of a config.json as YAML; notes list assumptions and what was left out.

    \b
        perfmodel network import config.json > my.yaml
        perfmodel network import config.json --family llama --name mine -o my.yaml
    """
    record = huggingface.read(config.file, config.family, config.name)
    write(iter([reading.text(record.network)]), config.output)
    for note in record.notes:
        say(f"note: {note}")
