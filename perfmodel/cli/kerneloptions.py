"""Options of commands on bundled kernels: sizes of the problem and fields of the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli import completing, ranges
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption

if TYPE_CHECKING:
    from perfmodel.evidence.kernel import BundledKernel

# Default sizes, and the shorter spellings that `predict` also has.
_USUAL: dict[str, Any] = {
    **dict.fromkeys(("seq_q", "seq_kv", "m", "n", "k", "rows", "cols"), 4096),
    "batch": 1,
    "heads_q": 32,
    "heads_kv": 32,
    "head_dim": 128,
    "causal": False,
    "window": None,
    "head_dim_v": None,
}
_SPELLINGS = {"heads": ("heads_q",), "kv_heads": ("heads_kv",), "seq": ("seq_q", "seq_kv")}


Kernel = Annotated[
    str,
    FieldOption(
        metavar="KERNEL",
        help="A bundled kernel (matmul, attention-tiled, softmax, ...), or your own: "
        "file.py:KERNEL.",
        argument=True,
        complete=completing.kernels,
    ),
]

Config = Annotated[list[str] | None, FieldOption(None, "KEY=VALUE", ("--config", "-c"))]


def loaded(name: str) -> BundledKernel:
    """The kernel with that name, or in a file. Raises what `registry.kernel` raises."""
    from perfmodel.cli.progress import status

    with status("loading") as report:
        report("Triton")
        from perfmodel.evidence import registry

        return registry.kernel(name)


def configured(config: Any, settings: Sequence[str]) -> Any:
    """`config` with fields set by "key=value". Raises `ProblemError` or `UnknownName`."""
    changes = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ProblemError(f"--config {setting!r} is no KEY=VALUE; write bm=128")
        values = {item.name: getattr(config, item.name) for item in fields(config)}
        if name not in values:
            raise UnknownName("config field", name, values)
        changes[name] = _value(value, values[name], f"--config {name}")
    return replace(config, **changes)


def _value(value: str, old: Any, name: str) -> Any:
    """`value` as the type that the field has now; "none" clears a field."""
    words = {"true": True, "false": False, "none": None}
    if isinstance(old, bool):
        if value.lower() not in words or words[value.lower()] is None:
            raise ProblemError(f"{name} is true or false, not {value!r}")
        return words[value.lower()]
    if isinstance(old, str):
        return value
    if old is None and value.lower() == "none":
        return None
    sizes = ranges.parse(value, name)
    if len(sizes) != 1:
        raise ProblemError(f"{name} takes one value, not {value!r}")
    return int(sizes[0])


def problems(
    kernel: BundledKernel, arguments: Sequence[str], types: Sequence[str] = ("bf16", "fp16")
) -> list[Any]:
    """The problems of the options, with default sizes for the rest; lists give their product.

    Values that are not sizes (operator, direction, variant) are the kernel's own. `types` are the
    types to try if none is given; the first that the kernel supports is taken.
    """
    base: Any = kernel.cases[0][0]
    defaults = {item.name: getattr(base, item.name) for item in fields(base)}
    usual = {name: value for name, value in _USUAL.items() if name in defaults}
    if defaults.get("seq_q") == 1:
        usual["seq_q"] = 1
    dtypes = [name for name in types if name in kernel.dtypes]
    if "dtype" in defaults and dtypes and defaults["dtype"] in kernel.dtypes:
        usual["dtype"] = dtypes[0]
    options = dict(_options(arguments, defaults))
    if ("heads_q",) in options and "heads_kv" in usual:  # as many key-value heads by default
        del usual["heads_kv"]
    cases = []
    for values in product(*options.values()):
        sizes = dict(usual)
        for names, value in zip(options, values, strict=True):
            sizes |= dict.fromkeys(names, value)
        if "heads_kv" in defaults:
            sizes.setdefault("heads_kv", sizes["heads_q"])
        cases.append(replace(base, **sizes))
    return cases


def _options(
    arguments: Sequence[str], defaults: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """(fields set together, values) of every option that the command itself does not take."""
    words = list(arguments)
    switches = {item for item in defaults if defaults[item] is True or defaults[item] is False}
    table = {**{name: (name,) for name in defaults}, **_SPELLINGS}
    while words:
        option, equals, value = words.pop(0).partition("=")
        names = table.get(option.lstrip("-").replace("-", "_"))
        if not option.startswith("-") or names is None or names[0] not in defaults:
            flags = [f"--{name.replace('_', '-')}" for name in table if table[name][0] in defaults]
            raise UnknownName("option", option, flags)
        if names[0] in switches:
            yield names, (True,)
            continue
        if not equals and not words:
            raise ProblemError(f"{option} needs a value")
        value = value if equals else words.pop(0)
        values: tuple[Any, ...]
        if isinstance(defaults[names[0]], str) or "dtype" in names[0]:
            values = tuple(part.strip() for part in value.split(","))
        else:
            values = tuple(int(size) for size in ranges.parse(value, option))
        yield names, values
