"""What a command takes where an option is not given is what the noun takes that it fills."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import json

import click
import pytest

from perfmodel import operators, predict
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.problem import single
from perfmodel.cli import app, build, network, train
from perfmodel.cli import predict as predict_command
from perfmodel.cli.ranges import parse
from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import load, systems
from perfmodel.networks import library
from perfmodel.networks.expand import expand
from perfmodel.networks.flops import USUAL, flops_per_token
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.setting import Setting, Shards
from perfmodel.networks.stack import Stack
from perfmodel.networks.stack import load as stack
from perfmodel.onchip.holding import holding
from perfmodel.onchip.latency import latency
from perfmodel.operators.options import DIRECTION
from perfmodel.predict import predict_arrays
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.step import predict_step


def defaults(function):
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def commands(group=None, context=None, path=()):
    """Every command of the command line, with the words that call it."""
    group = group or app
    context = context or click.Context(group)
    if not hasattr(group, "list_commands"):
        yield path, group
        return
    for name in group.list_commands(context):
        below = group.get_command(context, name)
        yield from commands(below, click.Context(below, parent=context), (*path, name))


OPERATORS = ("predict", "sweep", "whatif", "roofline")
COMMANDS = [(path, command) for path, command in commands()]


def module_of(path, command):
    """The module of a command; commands of operators are made for one that takes cases."""
    if path[0] in OPERATORS and path[1:] != ("query",):
        return importlib.import_module(f"perfmodel.cli.{path[0]}")
    return importlib.import_module(inspect.unwrap(command.callback).__module__)


@functools.cache
def nouns(module):
    """What a module calls of the model's classes and functions, by its name there."""
    tree = ast.parse(inspect.getsource(module))
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perfmodel."):
            there = importlib.import_module(node.module)
            for item in node.names:
                names[item.asname or item.name] = getattr(there, item.name, None) or (
                    importlib.import_module(f"{node.module}.{item.name}")
                )
    called = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        target = call.args[0] if ast.unparse(call.func) == "partial" else call.func
        first, *attributes = ast.unparse(target).split(".")
        noun = names.get(first)
        for attribute in attributes:
            noun = getattr(noun, attribute, None)
        if (inspect.isclass(noun) or inspect.isfunction(noun)) and not noun.__module__.startswith(
            ("perfmodel.cli", "perfmodel.render", "perfmodel.columns", "perfmodel.errors")
        ):
            called[noun] = ast.unparse(target)
    return called


FIELDS = {
    ("embedding", "zipf"): "exponent",
    ("network", "kv_dtype"): "dtype",
}
"""Options that are not called as the field that they fill."""
APART = {
    ("compare", "worse", "judging.verdicts"): "a text in per cent: 0% is 0.0",
    ("offload", "blocks", "search.best"): "auto searches them; the option is of a stated policy",
    ("sweep", "limit", "matching"): "a terminal shows the first 50 rows of a file",
    **{
        (name, "learned", "predict_arrays"): "a file there, a yes or no in Python"
        for name in ("predict", "sweep", "whatif", "roofline")
    },
}
"""Options that fill no field of that noun, though one has their name."""


def value(default):
    """A default as what it stands for: text as number, nothing given as None."""
    if isinstance(default, str):
        try:
            return int(parse(default, "--size", least=0)[0])
        except ProblemError:
            return default or None
    if callable(default):
        default = default()
    if isinstance(default, Stack):
        return default.name
    return default if isinstance(default, bool | int | float) else default or None


def fields(noun):
    """The defaults of a noun's fields; those made anew for each included."""
    made = {
        field.name: field.default_factory
        for field in (dataclasses.fields(noun) if dataclasses.is_dataclass(noun) else ())
        if field.default_factory is not dataclasses.MISSING
    }
    return defaults(noun) | made


def filled():
    """Each option that fills a field of a noun: command, option, noun, both defaults."""
    for path, command in COMMANDS:
        for noun, name in nouns(module_of(path, command)).items():
            known = fields(noun)
            for option in command.params:
                field = FIELDS.get((path[0], option.name), option.name.rstrip("_"))
                if option.required:
                    continue
                if field in known and (path[0], option.name, name) not in APART:
                    yield " ".join(path), option.name, name, option.default, known[field]


def test_an_option_has_the_default_of_the_field_that_it_fills():
    pairs = list(filled())
    assert len(pairs) > 400
    assert len({command.split()[0] for command, *_ in pairs}) > 15
    unlike = [pair for pair in pairs if value(pair[3]) != value(pair[4])]
    assert not unlike


@pytest.fixture
def asked(cli, monkeypatch):
    """What a bare command asks the model for: the problem and what is given beside it."""

    def call(*arguments):
        calls = []

        def refuse(problem, device, **options):
            calls.append((single(problem, 0), options))
            raise ProblemError("asked")

        with monkeypatch.context() as patch:
            patch.setattr(predict_command, "predict_arrays", refuse)
            assert "asked" in cli(*arguments)[2]
        return calls[0]

    return call


def bare(problem, name, way):
    """The problem of the same operator of which only the sizes without a default are given."""
    alone = {
        field.name: getattr(problem, field.name)
        for field in dataclasses.fields(problem)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    if isinstance(problem, DeclaredProblem):
        alone["given"] = {}
    if name == "grouped-gemm":
        alone["batch"] = problem.batch  # groups: a product's batch, of which Python has one
    return type(problem)(**alone, **way)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (operator.name, {"direction": direction} if direction else {})
        for operator in operators.every()
        for direction in (
            ("fwd", "bwd") if DIRECTION in operator.options and operator.name != "adamw" else ("",)
        )
    ],
)
def test_python_and_the_bare_command_ask_for_one_problem(asked, name, way):
    options = [word for key, text in way.items() for word in (f"--{key}", text)]
    problem, given = asked("predict", name, "-d", "h100-sxm", *options)
    alone = bare(problem, name, way)
    assert problem.sizes() == alone.sizes()
    if isinstance(problem, DeclaredProblem):  # whose sizes are all that it was given
        problem = dataclasses.replace(problem, given={})
    assert problem == alone
    usual = defaults(predict_arrays)
    assert {key: usual[key] for key, value in given.items() if (value or None) != usual[key]} == {}


@pytest.mark.parametrize("name", ["gemm", "attention", "mlp"])
def test_python_and_the_bare_command_predict_the_same(asked, cli, name):
    case = ("predict", name, "-d", "h100-sxm")
    found = predict(bare(asked(*case)[0], name, {}), load("h100-sxm"))
    (told,) = json.loads(cli(*case, "-f", "json")[1])["predictions"]
    assert found.seconds * 1e6 == told["time_us"]
    assert found.as_dict()["problem"] == told["problem"]


def test_python_and_the_bare_command_hold_one_network(output):
    out = output("hold", "llama-2-70b", "-d", "wse-2", "-f", "json")
    (told,) = json.loads(out)["machines"]
    made = Compressed(library.load("llama-2-70b"), naming.scheme("fp16"))
    found = holding(made, load("wse-2"))
    assert found.cache_bytes == told["cache_bytes"] > 0
    assert latency(made, load("wse-2"), found.devices).seconds * 1e6 == told["time_us"]


def test_a_plan_fills_thirty_one_options():
    options = {option.name: option.default for option in build.command(train.train).params}
    assert sum(field.name in options for field in dataclasses.fields(Plan)) == 31
    assert options["convention"] == USUAL == defaults(Step.mfu)["convention"]


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_python_and_the_command_predict_one_step_with_tensor_parallelism(output, tensor):
    """Rows of norms are split wherever layers are, unless a plan says otherwise."""
    options = ("--gpus", str(tensor), "--tensor", str(tensor), "--seq", "512")
    out = output("train", "llama-3.2-1b", "-s", "dgx-a100", *options, "-f", "json")
    (told,) = json.loads(out)["steps"]
    system = systems.load("dgx-a100")
    network, device = library.load("llama-3.2-1b"), load(system.device)
    plan = Plan(seq=512, tensor=tensor)
    assert predict_step(network, plan, device, system).as_dict() == told
    assert told["plan"]["sequence"] == (tensor > 1)
    assert dataclasses.replace(Plan(seq=512), tensor=tensor) == plan
    whole = predict_step(network, Plan(seq=512, tensor=tensor, sequence=False), device, system)
    kept = whole.as_dict()["memory_bytes"]["activations"]
    assert (kept > told["memory_bytes"]["activations"]) == (tensor > 1)


@pytest.mark.parametrize("name", ["llama-4-scout", "mistral-7b-v0.1", "gemma-3-4b", "gpt-oss-20b"])
def test_causal_keys_are_those_that_a_token_sees(name):
    network = library.load(name)

    def scores(seq):
        seen = 0.0
        for block in network.blocks:
            of = block.attention
            for i in range(seq):
                keys = (
                    min(i + 1, of.window) if of.window else i % of.chunk + 1 if of.chunk else i + 1
                )
                seen += block.repeat * keys * of.heads * (of.score_width + of.value_width) / seq
        return 6.0 * seen

    for seq in (100, 1025, 8192, 8193):
        masked = flops_per_token(network, seq, "causal") - flops_per_token(network, 1, "causal")
        assert masked == pytest.approx(scores(seq) - scores(1), rel=1e-9)


def test_causal_flops_of_published_networks():
    for name, seq, wanted in (
        ("llama-4-scout", 8193, 1.0890781e11),
        ("mistral-7b-v0.1", 4097, 4.5885161e10),
    ):
        assert flops_per_token(library.load(name), seq) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("tensor", [3, 8, 14])
def test_a_hint_names_what_every_size_divides_by(tensor):
    network = library.load("qwen2.5-7b")
    with pytest.raises(ProblemError, match=r"tensor of 1, 2, 4 would"):
        expand(network, Setting(1, 1, shards=Shards(tensor=tensor)))
    for fits in (1, 2, 4):
        expand(network, Setting(1, 1, shards=Shards(tensor=fits)))


def test_a_hint_of_stages_names_pipelines_that_the_chunks_allow():
    plan = Plan(pipeline=5, chunks=2)
    with pytest.raises(ProblemError, match=r"pipeline of 1, 2, 4, 8, 16 would"):
        plan.check(library.load("llama-3-8b"))


def test_eager_attention_after_llama_keeps_the_softmax_in_fp32():
    """transformers' Llama saves 18,223,104 bytes with the norms' 4,096 of statistics."""
    block = Block(SelfAttention(8, 8, 64), Mlp(1376))

    def saved(norm, attention):
        network = Network("small", 512, 32000, (block,), norm=norm)
        setting = Setting(2, 256, training=True, stack=stack("eager"), attention=attention)
        (layer,) = (one for one in expand(network, setting) if one.block)
        return layer.saved_bytes

    assert saved("rmsnorm", "unfused") == 18_223_104 - 4_096
    assert saved("rmsnorm", "flash") == 11_948_032 - 4_096 - 16_384  # and the scores' log-sum-exp


@pytest.mark.parametrize(
    "arguments",
    [
        ("offload", "opt-30b", "-d", "t4", "--host", "xeon-gold-6242", "--disk-rate"),
        ("hold", "llama-2-70b", "-d", "wse-2", "--stream-rate"),
    ],
    ids=["disk", "stream"],
)
@pytest.mark.parametrize("rate", ["0 GB/s", "-1 GB/s", "inf GB/s", "1e-300 GB/s", "1e300 GB/s"])
def test_a_rate_is_above_0_and_finite(cli, arguments, rate):
    code, _, err = cli(*arguments, rate)
    assert code == 2
    assert len(err.splitlines()) == 1


def test_a_price_without_a_finite_sum_is_refused(cli):
    code, _, err = cli("hold", "llama-2-70b", "-d", "h100", "--price", "1e308")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "no finite sum" in err


def test_a_pass_is_called_what_was_asked(cli):
    for way in network.PASSES:
        _, out, _ = cli("network", "llama-3.2-1b", "-d", "h100", "--seq", "128", "--pass", way)
        assert f"pass={way}" in out
