"""Lines of every command that there is: the examples on its help page, with words drawn anew.

Commands, options and the names that an option takes are those of the command line itself, so that
what is added there is fuzzed without a line here.
"""

from __future__ import annotations

import re
import shlex
from functools import cache

import click
from dice import DEVICES, Dice
from inputs import Input

WEIGHTS = {
    "predict": 40, "whatif": 7, "sweep": 12, "hardware": 5, "explain": 3, "map": 1, "list": 4,
    "show": 5, "compare": 2, "collective": 4, "network": 4, "train": 5, "infer": 5, "graph": 4,
    "compress": 3, "hold": 3, "offload": 3, "embedding": 3,
}  # fmt: skip
"""How often a command is drawn; any other once."""
LONG = (
    "measure", "calibrate", "demo", "replay", "compile", "report", "trace", "learn", "profile",
)  # fmt: skip
"""Commands of minutes, or that run code or read files: here only with a word that stops them."""
SLOW = re.compile(r"conv|mla|linear-attention|scan|moe|sparse|delta|retention|lightning")
"""Operators whose schedule is searched for up to seconds: drawn seldom, and never in ranges."""
ENDLESS = ("--plan", "--scaling", "--tokens", "--requests", "--derive", "--dask")
"""Options that search for as long as there are plans, or wait for another machine."""

CONDITIONS = (
    "time_us < 100", "time_us < 100 and batch > 1", "limiter == hbm", "device != 'b200'",
    "not (time > 1)", "causal == true", "1 < 2", "time", "time / 0 > 1", "0/0 == 0/0",
    "reason == ''", "time < 1 < 2", "and", "(((time < 1)))", "-" * 50 + "time < 1",
    " + ".join(["1"] * 400) + " < time", "dtype == bf16 or dtype == \"fp8\"",
)  # fmt: skip
NUMBERS = ("HBM", "L2", "SRAM", "SM", "clock", "matrix", "exp", "latency", "power", "launch")
AMOUNTS = (
    "x2", "/2", "+50%", "x0", "x1e30", "-100%", " 160", " 2 GHz", "x0.001", " 3 TB/s", " 1 us",
    " 40 MiB", "x", "x1e999",
)  # fmt: skip
LINKS = ("nvlink", "peer", "network", "host", "xgmi", "hbm", "foo", "")
PLAIN = ("0", "1", "-1", "0.5", "1.5", "50%", "2 GB/s", "0 B", "1 TB", "1e308", "nan", "1,2", "foo")
OUTPUTS = ("out.json", "out.csv", "out.md", "out", "out.xml", "no/such/out.csv", "-", ".")


def make(dice: Dice) -> Input:
    """A command line."""
    arguments = line(dice)
    if arguments and arguments[0] not in LONG and dice.chance(0.1):
        arguments = mishap(dice, arguments)
    return Input(
        "commands",
        tuple(arguments),
        encoding=dice.choices(("utf-8", "latin-1", "ascii", "cp1252"), (8, 1, 1, 1))[0],
        terminal=dice.chance(0.1),
    )


def line(dice: Dice) -> list[str]:
    """The words of a command that is there, or now and then of none."""
    if dice.chance(0.03):
        return dice.choice(([], ["--foo"], [dice.hostile()], ["prdict"], ["predict"], ["sweep"]))
    words = drawn(dice)
    if dice.chance(0.02):
        return [*words, "--help"]
    if words[0] in LONG:
        return [*words, dice.hostile(), *options(dice, words, 0.05)]
    found = list(dice.choice(examples(words) or (words,)))
    if dice.chance(0.7):  # mostly another device, in the examples and out of them
        found = [word if word not in ("h100-sxm", "h100", "a100") else device(dice)
                 for word in found]  # fmt: skip
    found = [redrawn(dice, word) for word in found]
    found += options(dice, words, 0.08)
    return simple(found) if SLOW.search(" ".join(words)) else found


def drawn(dice: Dice) -> tuple[str, ...]:
    """The words that call a command, from the top of the tree down."""
    words: tuple[str, ...] = ()
    while names := below(words):
        again = 4 if words else 1  # operators whose search is long, each fourth time
        for _ in range(again):
            weights = [1.0 if words else WEIGHTS.get(name, 1.0) for name in names]
            (name,) = dice.choices(names, weights)
            if not SLOW.search(name):
                break
        words = (*words, name)
        if words[0] == "graph" or not below(words) or (words[0] == "network" and dice.chance(0.6)):
            break
    return words


@cache
def context(words: tuple[str, ...]) -> click.Context:
    """The context of a command."""
    from perfmodel.cli import app

    if not words:
        return click.Context(app, info_name="perfmodel")
    parent = context(words[:-1])
    command = parent.command.get_command(parent, words[-1])  # type: ignore[attr-defined]
    return click.Context(command, parent=parent, info_name=words[-1])


@cache
def below(words: tuple[str, ...]) -> tuple[str, ...]:
    """Commands below one."""
    at = context(words)
    return tuple(getattr(at.command, "list_commands", lambda _: ())(at))


@cache
def examples(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The command's own examples, of a group those of the group."""
    text = re.sub(r"\\\n\s*", "", context(words).command.help or "")
    found = []
    for shown in re.findall(r"^\s*perfmodel (.*)$", text, re.MULTILINE):
        said = tuple(shlex.split(shown.split(" | ")[0].split(" && ")[0]))
        if said[: len(words)] == words and not set(ENDLESS) & set(said):
            found.append(said)
    return tuple(found)


@cache
def names(words: tuple[str, ...], option: str) -> tuple[str, ...]:
    """What completion offers for an option."""
    at = context(words)
    (item,) = (each for each in at.command.params if each.name == option)
    return tuple(each.value for each in item.shell_complete(at, "") if each.value)


def options(dice: Dice, words: tuple[str, ...], share: float) -> list[str]:
    """Options of a command, each with this chance."""
    found: list[str] = []
    for option in dice.some(context(words).command.params, share):
        if isinstance(option, click.Option) and not set(option.opts) & set(ENDLESS):
            flag = dice.choice(option.opts)
            found += [flag] if option.is_flag else [flag, value(dice, words, option)]
    return found


def value(dice: Dice, words: tuple[str, ...], option: click.Option) -> str:
    """A value of an option: of its names, of its kind, or none that it can mean."""
    kind, draw = str(option.metavar or "").upper(), dice.random()
    if draw < 0.04:
        return dice.hostile()
    if kind.startswith(("FILE", "FOLDER")):
        return dice.choice(OUTPUTS)
    offered = names(words, str(option.name))
    if offered and draw < 0.9:
        several = dice.chance(0.15) and not SLOW.search(" ".join(words))
        return ",".join(dice.choice(offered) for _ in range(2 if several else 1))
    spread = {
        "AXIS": f"{dice.choice('bmnkqxg')}={dice.choice('2248130')}@{dice.choice(LINKS)}",
        "TENS": f"{dice.choice('ABCQKVOXY')}={dice.choice(('m', 'b', 'x', 'whole', 'foo'))}",
        "OPER": f"{dice.choice('ABCQKVOXY')}={dice.choice(LINKS)}",
        "COND": dice.choice(CONDITIONS),
        "CHAN": dice.choice(NUMBERS) + dice.choice(AMOUNTS),
        "SIZE": dice.sizes(),
        "BYTE": dice.sizes(),
        "TOKE": dice.size(20),
        "NAME": device(dice),
    }
    word = spread.get(kind[:4]) or dice.choice((*PLAIN, str(option.default or ""), dice.size(12)))
    return dice.damaged(word) if dice.chance(0.05) else word


def redrawn(dice: Dice, word: str) -> str:
    """A size of an example is now and then another, and any word damaged."""
    if re.fullmatch(r"\d+[kKM]?", word) and dice.chance(0.4):
        return dice.sizes()
    return dice.damaged(word) if dice.chance(0.01) else word


def device(dice: Dice) -> str:
    """A device's name, mostly a real one."""
    return dice.choice(("h10", "./none.yaml", "a100,h100", dice.hostile())) if dice.chance(
        0.03
    ) else dice.choice(DEVICES)  # fmt: skip


def shown(dice: Dice) -> list[str]:
    """A format to show."""
    return ["-f", dice.choice(("json", "csv", "markdown", "table"))] if dice.chance(0.7) else []


def simple(arguments: list[str]) -> list[str]:
    """The words without ranges and lists of sizes."""
    return [re.sub(r"^(\d+\w?)[,:].*$", r"\1", word) for word in arguments]


def mishap(dice: Dice, arguments: list[str]) -> list[str]:
    """The words with one change: a word removed, doubled, swapped, damaged or added."""
    arguments = list(arguments)
    place = dice.randrange(len(arguments))
    draw = dice.randrange(5)
    if draw == 0:
        del arguments[place]
    elif draw == 1:
        arguments.insert(place, arguments[dice.randrange(len(arguments))])
    elif draw == 2:
        arguments[place] = dice.hostile()
    elif draw == 3:
        arguments[place] = dice.damaged(arguments[place])
    else:
        arguments.insert(place + 1, dice.hostile())
    # Ranges that a change made too long to run quickly are lists.
    longest = [max((len(part) for part in word.split(":")), default=0) for word in arguments]
    return [word if n < 4 else word.replace(":", ",")
            for word, n in zip(arguments, longest, strict=True)]  # fmt: skip
