"""Options of commands on bundled kernels: sizes of the problem and fields of the config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli import ranges, spellings
from perfmodel.cli.build import Declared, further
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption

if TYPE_CHECKING:
    from perfmodel.proof.kernel import BundledKernel

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
_OWN = ("seq_q", "heads_kv", "head_dim", "head_dim_v")
"""Sizes that are a kernel's own where all of its full-size problems have the same: decoding has one
query, absorbed latent attention one head of keys."""
_SPELLINGS = {"heads": ("heads_q",), "kv_heads": ("heads_kv",), "seq": ("seq_q", "seq_kv")}


@dataclass(frozen=True)
class Asked:
    """A bundled kernel, and its config."""

    kernel: Annotated[
        str,
        FieldOption(None, "KERNEL", argument=True, names="perfmodel.proof.registry:kernels"),
    ]
    """A bundled kernel (matmul, attention-tiled, softmax, ...), or your own: file.py:KERNEL."""
    config: Annotated[
        Mapping[str, str],
        FieldOption(None, "KEY=VALUE", ("--config", "-c"), example="bm=128"),
    ] = field(default_factory=dict)
    """Set a field of the config: bm=128; repeats."""

    def loaded(self) -> BundledKernel:
        """The kernel with that name, or in a file. Raises what `registry.kernel` raises."""
        from perfmodel.cli.progress import status

        with status("loading") as report:
            report("Triton")
            from perfmodel.proof import registry

            return registry.kernel(self.kernel)

    def configured(self, config: Any) -> Any:
        """`config` with the fields set. Raises `ProblemError` or `UnknownName`."""
        values = {item.name: getattr(config, item.name) for item in fields(config)}
        changes = {}
        for name, text in self.config.items():
            spellings.named("config field", name, values)
            changes[name] = _value(text, values[name], f"--config {name}")
        return replace(config, **changes)


def _value(value: str, old: Any, name: str) -> Any:
    """`value` as the type that the field has now; "none" clears a field."""
    words = {"true": True, "false": False, "none": None}
    if isinstance(old, bool):
        if words.get(value.lower()) is None:
            raise ProblemError(f"{name} is true or false, not {value!r}")
        return words[value.lower()]
    if isinstance(old, str):
        return value
    return None if old is None and value.lower() == "none" else ranges.one(value, name)


def problems(
    kernel: BundledKernel, words: Sequence[str], types: Sequence[str] = ("bf16", "fp16")
) -> list[Any]:
    """The problems of the options, with default sizes for the rest; lists give their product.

    Values that are not sizes (operator, direction, variant) are the kernel's own. `types` are the
    types to try if none is given; the first that the kernel supports is taken.
    """
    base: Any = kernel.cases[0][0]
    defaults = {item.name: getattr(base, item.name) for item in fields(base)}
    usual = {name: value for name, value in _USUAL.items() if name in defaults}
    shared = {
        name: {getattr(form, name) for form in kernel.forms} for name in _OWN if name in defaults
    }
    fixed = {name: values.pop() for name, values in shared.items() if len(values) == 1}
    dtypes = [name for name in types if name in kernel.dtypes]
    if "dtype" in defaults and dtypes and defaults["dtype"] in kernel.dtypes:
        usual["dtype"] = dtypes[0]
    own = {**{name: (name,) for name in defaults}, **_SPELLINGS}
    own = {option: names for option, names in own.items() if names[0] in defaults}
    flags = {option: option.replace("_", "-") for option in own}
    given = further(
        [
            Declared(
                option,
                bool if isinstance(defaults[names[0]], bool) else str,
                None,
                FieldOption(None, spellings=(f"--{flags[option]}",
                            *([f"-{option}"] if len(option) == 1 else []))),
            )
            for option, names in own.items()
        ],
        words,
    )  # fmt: skip
    if "heads_kv" in usual and {"heads", "heads_q"} & given.keys():
        del usual["heads_kv"]  # as many key-value heads by default
    usual |= fixed
    values = {
        own[option]: _values(text, defaults[own[option][0]], own[option][0], f"--{flags[option]}")
        for option, text in given.items()
    }
    cases = []
    for choice in product(*values.values()):
        sizes = dict(usual)
        for names, value in zip(values, choice, strict=True):
            sizes |= dict.fromkeys(names, value)
        if "heads_kv" in defaults:
            sizes.setdefault("heads_kv", sizes["heads_q"])
        cases.append(replace(base, **sizes))
    return cases


def _values(text: Any, default: Any, name: str, flag: str) -> list[Any]:
    """The values of an option: a flag, names or sizes."""
    if text is True:
        return [True]
    if isinstance(default, str) or "dtype" in name:
        return list(spellings.names(text))
    number = float if isinstance(default, float) else int
    return [number(size) for size in ranges.parse(text, flag)]
