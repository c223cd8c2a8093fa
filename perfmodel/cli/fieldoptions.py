"""Options of a command from the fields of a dataclass, which are declared once, in the dataclass.

A field's option has its name, type and default, the first sentence of its docstring, and what its
`FieldOption` adds. Numbers take lists and ranges and texts take lists, which make a grid.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from perfmodel.cli import completing, known, ranges
from perfmodel.entries import bare
from perfmodel.entryschema import about
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.plaintext import quoted

Action = Callable[..., None]
Reader = Callable[[Any], list[Any]]
Values = Callable[[], dict[str, list[Any]]]
"""Reads the values of each field, in the order of the options. Raises `PerfmodelError`."""


def asking_for(
    noun: Any, without: Collection[str] = (), after: Mapping[str, str] | None = None
) -> Callable[[Action], Action]:
    """Makes an action a command that asks for the fields of `noun`, except those `without`.

    Their options stand where the action has its parameter `values`, which receives `Values`.
    `after` has options that stand elsewhere: each name with that of the option before it.
    """
    hints, docs = get_type_hints(noun, include_extras=True), about(noun)
    options = {
        field.name: _option(field, hints[field.name], docs[field.name].meaning)
        for field in fields(noun)
        if field.name not in without
    }

    def build(action: Action) -> Action:
        own = inspect.signature(action, eval_str=True).parameters
        names = [name for item in own for name in (options if item == "values" else (item,))]
        for name, place in (after or {}).items():
            names.remove(name)
            names.insert(names.index(place) + 1, name)

        @wraps(action)
        def run(**given: Any) -> None:
            texts = {name: given.pop(name) for name in names if name in options}
            action(values=lambda: {n: options[n][1](text) for n, text in texts.items()}, **given)

        parameters = [options[name][0] if name in options else own[name] for name in names]
        keywords = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in parameters]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in keywords}
        return run

    return build


def _option(field: Field[Any], hint: Any, meaning: str) -> tuple[inspect.Parameter, Reader]:
    """The parameter of a command for a field, and the reader of its value."""
    kind, metadata = bare(hint), getattr(hint, "__metadata__", ())
    option = next((item for item in metadata if isinstance(item, FieldOption)), FieldOption())
    flags = option.spellings or (f"--{field.name.replace('_', '-')}",)
    is_text = kind in (int, str) or option.read is not None  # Typer reads others
    names, text = option.names, option.help or f"{meaning.partition('. ')[0].removesuffix('.')}."
    if isinstance(names, tuple) and names:
        several = "" if option.single else ", with commas"
        text = f"{text.removesuffix('.')}{several}: {', '.join(names)}."
    choices = names if callable(names) else lambda: names
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory().name  # what is read from a name
    elif default is MISSING:
        default = inspect.Parameter.empty
    typer_option = typer.Option(
        *flags,
        metavar=None if kind is bool else option.metavar,
        min=None if is_text or kind is bool else option.least,
        help=text,
        autocompletion=completing.of_list(choices) if names else None,
        rich_help_panel=option.panel,
    )

    def read(value: Any) -> list[Any]:
        """The values of a text, or the one that Typer has read."""
        if kind is int and option.single:
            return [size(value, flags[0], option.least)]
        if kind is int:
            return [int(number) for number in ranges.parse(value, flags[0], option.least)]
        if not is_text or (value == default and not option.single):
            return [value]
        texts = (value,) if option.single else known.names(value)
        entries = [option.read(each) if option.read else each for each in texts]
        return [getattr(entry, "name", entry) if kind is str else entry for entry in entries]

    parameter = inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=str(default) if isinstance(default, int) and is_text else default,
        annotation=Annotated[str if is_text else kind, typer_option],
    )
    return parameter, read


def size(text: str, flag: str, least: int = 1) -> int:
    """The size in a text. Raises `ProblemError` for a list or range, and as `ranges.read`."""
    values = ranges.read(text, flag, least)
    if len(values) != 1:
        raise ProblemError(f"{flag} takes one size, not {quoted(text)}; choose one")
    return int(values.array[0])
