"""A field of a dataclass is an option of a command, with lists and ranges, declared once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Annotated

import click
import pytest
from cases import cases

from perfmodel.cli import build, ranges
from perfmodel.cli.build import Values, asking_for
from perfmodel.cli.combining import Grid
from perfmodel.cli.drawing import Drawing
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.report import Column, Report
from perfmodel.training.plan import Plan

ROASTS = ("light", "dark")


@dataclass(frozen=True)
class Bean:
    """What a name stands for."""

    name: str


def bean(name):
    if name not in ("arabica", "robusta"):
        raise UnknownName("bean", name, ("arabica", "robusta"))
    return Bean(name)


def blends():
    return ("house", "guest")


@dataclass(frozen=True)
class Coffee:
    """A noun without a command of its own."""

    cups: int = 1
    """Cups of a pot."""
    roast: Annotated[str, FieldOption("Taste", "ROAST", names=ROASTS)] = "dark"
    """Roast of the beans."""
    blend: Annotated[str, FieldOption(None, "NAME", single=True, names=blends)] = "house"
    """Blend."""
    grams: Annotated[int, FieldOption(None, "G", ("--grams", "-g"), single=True)] = 8
    """Grams of a cup."""
    beans: Annotated[Bean, FieldOption(None, "NAME", read=bean)] = field(
        default_factory=lambda: Bean("arabica")
    )
    """Kind of bean."""
    minutes: Annotated[int | None, FieldOption(least=0)] = None
    """Minutes on the stove."""


@dataclass(frozen=True)
class Sweetened(Coffee):
    """The same noun with one more field."""

    sugar_spoons: Annotated[int, FieldOption(least=0)] = 2
    """Spoons in each cup. What is left at the bottom counts."""


def command(noun, **rules):
    """A command that prints every combination of its options' values."""

    @asking_for(noun, **rules)
    def brew(
        pot: Annotated[str, FieldOption(argument=True)], *, values: Values, pairs: bool = False
    ) -> None:
        """Brew."""
        rows = Grid(values(), pairs)
        print(json.dumps([{"pot": pot, **row} for row in rows], default=lambda x: x.name))

    return build.command(brew)


@pytest.fixture
def brewed(capsys):
    def call(noun, *arguments, **rules):
        command(noun, **rules).main(args=["moka", *arguments], standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    return call


def options(noun, **rules):
    return {option.name: option for option in command(noun, **rules).params}


def test_a_field_more_is_an_option_more():
    less, more = options(Coffee), options(Sweetened)
    (name,) = more.keys() - less.keys()
    assert (name, more[name].opts) == ("sugar_spoons", ["--sugar-spoons"])
    assert (more[name].default, more[name].help) == ("2", "Spoons in each cup.")


@pytest.mark.parametrize(
    ("text", "values"),
    [("3", [3]), ("3,1", [3, 1]), ("0:2", [0, 1, 2]), ("1:8:x2", [1, 2, 4, 8]), ("1k", [1024])],
)
def test_a_field_more_takes_lists_and_ranges_that_make_a_grid(brewed, text, values):
    rows = brewed(Sweetened, "--sugar-spoons", text, "--cups", "1,2", "--roast", "light,dark")
    combinations = [(row["cups"], row["roast"], row["sugar_spoons"]) for row in rows]
    assert combinations == [(c, r, s) for c in (1, 2) for r in ("light", "dark") for s in values]
    assert brewed(Sweetened, "--sugar-spoons", "1,2", "--cups", "3,4", "--pairs") == [
        {**row, "sugar_spoons": spoons}
        for row, spoons in zip(brewed(Coffee, "--cups", "3,4"), (1, 2), strict=True)
    ]


def test_nothing_given_is_every_default(brewed):
    (row,) = brewed(Sweetened)
    noun = Sweetened()
    assert row.pop("pot") == "moka"
    assert row.pop("beans") == noun.beans.name
    assert row == {name: getattr(noun, name) for name in row}
    assert [*row] == [item.name for item in fields(noun) if item.name != "beans"]


def test_names_are_completed_and_a_tuple_is_in_the_help():
    declared = options(Coffee)
    assert declared["roast"].help == "Roast of the beans, with commas: light, dark."
    assert (declared["blend"].help, declared["blend"].metavar) == ("Blend.", "NAME")
    context = click.Context(command(Coffee))
    for name, choices in (("roast", ROASTS), ("blend", blends())):
        completed = [item.value for item in declared[name].shell_complete(context, "")]
        assert completed == list(choices)
    assert declared["roast"].panel == "Taste"


@cases
def test_what_is_no_value_is_one_line(arguments, line):
    with pytest.raises(PerfmodelError, match=line.replace("(", r"\(")):
        command(Coffee).main(args=["moka", *arguments], standalone_mode=False)


def test_a_command_leaves_fields_out():
    names = list(options(Coffee, without=("beans", "minutes")))
    assert names == ["pot", "cups", "roast", "blend", "grams", "pairs"]


def test_train_leaves_out_only_fields_that_it_computes_or_does_not_offer(output):
    out = output("train", "--help")
    missing = {f.name for f in fields(Plan) if f"--{f.name.replace('_', '-')}" not in out}
    assert missing == {
        "accumulation", "data", "sequence", "dropout", "precision", "loss", "ends", "training",
    }  # fmt: skip


TWO = ranges.read("2", "")


@dataclass(frozen=True)
class Asked:
    """What `brew` is asked for."""

    cups: Annotated[ranges.Values, FieldOption()] = TWO
    """Cups of a pot: a size, list or range."""


def brew(asked: Asked, drawing: Drawing) -> Report:
    """Brew some pots."""
    rows = [{"cups": cups, "minutes": 3 + cups} for cups in asked.cups]
    drawing.draw(lambda page: dots_chart(rows, Dots("Pots", ["cups"], ["minutes"]), page=page))
    return Report("pots", rows, [Column("cups", "cups"), Column("minutes", "minutes")])


def test_a_command_is_a_noun_and_an_action(capsys, tmp_path):
    def said(*arguments):
        words = [str(argument) for argument in arguments]
        build.command(brew).main(args=words, standalone_mode=False)
        return capsys.readouterr().out

    answer = json.loads(said("--cups", "1:4:x2", "--format", "json"))
    assert [row["minutes"] for row in answer["pots"]] == [4, 5, 7]
    chart, numbers, table = (tmp_path / name for name in ("x.svg", "x.csv", "x.md"))
    said("--cups", "1:4", "--chart", chart, "--style", "dark", "--data", numbers, "-o", table)
    assert "<svg" in chart.read_text()
    assert len(numbers.read_text().splitlines()) == 5
    assert "|" in table.read_text()
    page = said("--help")
    assert all(text in page for text in ("Brew some pots.", "Cups of a pot", "--transparent"))
    with pytest.raises(PerfmodelError, match="--style is an option of charts"):
        said("--style", "dark")
