"""Problems from the command line: one operator with lists of sizes, as their cartesian product.

Each operator is a function whose parameters are its options; `command` joins such a function to
what is done with the cases (predict them, draw them), so that options are declared once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Annotated, Any

import numpy as np
import typer

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.cli import ranges
from perfmodel.cli.known import names, variants
from perfmodel.cli.ranges import Values
from perfmodel.errors import ProblemError

CHUNK = 8192  # cases predicted in one call

Sizes = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Cases:
    """The product of all values of all sizes, for each combination of kinds.

    `values` are counted before they are made; `follows` names sizes that take the value of another
    one; `kinds` are the values of what is no size (types, direction), of which each case has one.
    """

    make: Callable[..., Problem]
    values: Mapping[str, Values]
    kinds: Mapping[str, tuple[Any, ...]]
    follows: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many cases there are."""
        return math.prod(self._counts().values())

    @property
    def operator(self) -> str:
        """What the problems compute: attention, gemm, softmax ..."""
        if self.make is Attention:
            return "attention"
        return str(self.kinds["op"][0]) if "op" in self.kinds else "gemm"

    @cached_property
    def sizes(self) -> Sizes:
        """The values of every size as an array."""
        return {name: values.array for name, values in self.values.items()}

    def first(self) -> Cases:
        """The first case of each kind."""
        return replace(self, values={name: values.first() for name, values in self.values.items()})

    def varying(self) -> list[str]:
        """What differs between the cases, by the names of the problem's fields."""
        return [name for name, count in self._counts().items() if count > 1]

    def _counts(self) -> dict[str, int]:
        """How many values each size and each kind has."""
        tables: dict[str, Sized] = {**self.values, **self.kinds}
        return {name: len(values) for name, values in tables.items()}

    def chunks(self) -> Iterator[tuple[int, list[tuple[Problem, np.ndarray]]]]:
        """A chunk's number of cases and the groups that one call predicts, with their places."""
        shape = tuple(map(len, self.values.values()))
        for values in product(*self.kinds.values()):
            kind = dict(zip(self.kinds, values, strict=True))
            for start in range(0, math.prod(shape), CHUNK):
                count = min(CHUNK, math.prod(shape) - start)
                places = np.unravel_index(np.arange(start, start + count), shape)
                chosen = {
                    name: values[place]
                    for (name, values), place in zip(self.sizes.items(), places, strict=True)
                }
                chosen |= {name: chosen[other] for name, other in self.follows.items()}
                yield count, [(self._make(chosen, kind, i), i) for i in _alike(chosen, count)]

    def _make(self, sizes: Sizes, kind: Mapping[str, Any], index: np.ndarray) -> Problem:
        picked = {name: values[index] for name, values in sizes.items()}
        if "window" in picked and not picked["window"].any():
            del picked["window"]
        return self.make(**picked, **kind)


def _alike(sizes: Sizes, count: int) -> list[np.ndarray]:
    """Places of cases that one call can predict: decode apart, windowed apart."""
    decode = sizes.get("seq_q", np.zeros(count)) == 1
    windowed = sizes.get("window", np.zeros(count)) > 0
    key = 2 * decode + windowed
    return [np.flatnonzero(key == value) for value in sorted(set(key.tolist()))]


_SIZE = "a size, list (8,16) or range (512:16k:x2)"
_DTYPE = "Type: fp32, tf32, fp16, bf16, fp8, ...; lists too."
Dtype = Annotated[str, typer.Option("--dtype", metavar="TYPE", help=_DTYPE)]
Direction = Annotated[
    str, typer.Option("--direction", metavar="WAY", help="fwd, bwd or fwdbwd; lists too.")
]
_DIRECTIONS = ("fwd", "bwd", "fwdbwd")


def _directions(text: str) -> tuple[Any, ...]:
    listed = names(text)
    for name in listed:
        if name not in _DIRECTIONS:
            raise ProblemError(f"unknown direction {name!r}; known: {', '.join(_DIRECTIONS)}")
    return listed


def _size(*flags: str, help: str) -> Any:
    return typer.Option(*flags, metavar="SIZES", help=help)


Sequences = Annotated[str, _size("--batch", help=f"Sequences: {_SIZE}.")]
Heads = Annotated[str, _size("--heads", help="Query heads.")]
KvHeads = Annotated[str | None, _size("--kv-heads", help="Key-value heads [default: as --heads].")]
Seq = Annotated[str, _size("--seq", help="Queries and keys alike.")]
SeqQ = Annotated[str | None, _size("--seq-q", help="Queries, where they differ; 1 is decode.")]
SeqKv = Annotated[str | None, _size("--seq-kv", help="Keys, where they differ.")]
HeadDim = Annotated[str, _size("--head-dim", help="Dimension of a head.")]
HeadDimV = Annotated[
    str | None, _size("--head-dim-v", help="Dimension of values, where it differs.")
]
Causal = Annotated[bool, typer.Option("--causal", help="Hide later keys.")]
Padding = Annotated[bool, typer.Option("--padding-mask", help="Mask padded keys.")]
Dropout = Annotated[bool, typer.Option("--dropout", help="Drop scores, as in training.")]
KeysOnly = Annotated[bool, typer.Option("--keys-only", help="Values lie in the keys' memory.")]
Window = Annotated[str | None, _size("--window", help="See the nearest keys only; 0: all.")]
KvDtype = Annotated[
    str | None, typer.Option("--kv-dtype", metavar="TYPE", help="Type of keys and values.")
]


def attention(
    batch: Sequences = "1",
    heads: Heads = "32",
    kv_heads: KvHeads = None,
    seq: Seq = "4096",
    seq_q: SeqQ = None,
    seq_kv: SeqKv = None,
    head_dim: HeadDim = "128",
    head_dim_v: HeadDimV = None,
    causal: Causal = False,
    window: Window = None,
    dtype: Dtype = "bf16",
    kv_dtype: KvDtype = None,
    direction: Direction = "fwd",
    padding_mask: Padding = False,
    dropout: Dropout = False,
    keys_only: KeysOnly = False,
) -> Cases:
    """Scaled dot-product attention: MHA, GQA, MQA; prefill and decode."""
    sizes = {
        "batch": ranges.read(batch, "--batch"),
        "heads_q": ranges.read(heads, "--heads"),
        "head_dim": ranges.read(head_dim, "--head-dim"),
    }
    follows = {}
    if kv_heads is None:
        follows["heads_kv"] = "heads_q"
    else:
        sizes["heads_kv"] = ranges.read(kv_heads, "--kv-heads")
    _sequences(sizes, follows, seq, seq_q, seq_kv)
    if head_dim_v is not None:
        sizes["head_dim_v"] = ranges.read(head_dim_v, "--head-dim-v")
    if window is not None:
        sizes["window"] = ranges.read(window, "--window", least=0)
    kinds: dict[str, tuple[Any, ...]] = {"causal": (causal,), "dtype": names(dtype)}
    kinds |= {"kv_dtype": names(kv_dtype) or (None,), "direction": _directions(direction)}
    asked = {"padding_mask": padding_mask, "dropout": dropout, "keys_only": keys_only}
    kinds |= {name: (True,) for name, wanted in asked.items() if wanted}
    return Cases(Attention, sizes, kinds, follows)


def _sequences(
    sizes: dict[str, Values],
    follows: dict[str, str],
    seq: str,
    seq_q: str | None,
    seq_kv: str | None,
) -> None:
    """--seq sets both lengths together; --seq-q and --seq-kv vary each on its own."""
    if seq_q is None and seq_kv is None:
        sizes["seq_q"] = ranges.read(seq, "--seq")
        follows["seq_kv"] = "seq_q"
    else:
        for name, flag, text in (("seq_q", "--seq-q", seq_q), ("seq_kv", "--seq-kv", seq_kv)):
            sizes[name] = ranges.read(seq, "--seq") if text is None else ranges.read(text, flag)


def gemm(
    m: Annotated[str, _size("-m", "--m", help=f"Rows of C: {_SIZE}.")] = "4096",
    n: Annotated[str, _size("-n", "--n", help="Columns of C.")] = "4096",
    k: Annotated[str, _size("-k", "--k", help="Summed dimension.")] = "4096",
    batch: Annotated[str, _size("--batch", help="Products.")] = "1",
    dtype: Dtype = "bf16",
) -> Cases:
    """Matrix product C[m,n] = A[m,k] B[k,n], batched; low-precision weights too."""
    given = {"m": (m, "-m"), "n": (n, "-n"), "k": (k, "-k"), "batch": (batch, "--batch")}
    sizes = {name: ranges.read(text, flag) for name, (text, flag) in given.items()}
    return Cases(Matmul, sizes, {"dtype": names(dtype)})


Rows = Annotated[str, _size("--rows", help=f"Rows: {_SIZE}.")]
Cols = Annotated[str, _size("--cols", help="Columns, along which it runs.")]


def _rowwise(op: str, rows: str, cols: str, **kinds: tuple[Any, ...]) -> Cases:
    sizes = {"rows": ranges.read(rows, "--rows"), "cols": ranges.read(cols, "--cols")}
    return Cases(Rowwise, sizes, {"op": (op,), **kinds})


def softmax(
    rows: Rows = "4096", cols: Cols = "4096", dtype: Dtype = "bf16", direction: Direction = "fwd"
) -> Cases:
    """Softmax along each row."""
    return _rowwise("softmax", rows, cols, dtype=names(dtype), direction=_directions(direction))


def layernorm(
    rows: Rows = "4096", cols: Cols = "4096", dtype: Dtype = "bf16", direction: Direction = "fwd"
) -> Cases:
    """Layer normalisation along each row."""
    return _rowwise("layernorm", rows, cols, dtype=names(dtype), direction=_directions(direction))


def rmsnorm(
    rows: Rows = "4096", cols: Cols = "4096", dtype: Dtype = "bf16", direction: Direction = "fwd"
) -> Cases:
    """Root-mean-square normalisation along each row."""
    return _rowwise("rmsnorm", rows, cols, dtype=names(dtype), direction=_directions(direction))


def pointwise(
    rows: Rows = "4096",
    cols: Cols = "4096",
    variant: Annotated[
        str, typer.Option("--variant", metavar="NAME", help="add, gelu, silu_mul, ...; lists too.")
    ] = "add",
    inputs: Annotated[str, _size("--inputs", help="Tensors read.")] = "1",
    outputs: Annotated[str, _size("--outputs", help="Tensors written.")] = "1",
    dtype: Dtype = "bf16",
    direction: Direction = "fwd",
) -> Cases:
    """An element-wise map over rows x cols."""
    cases = _rowwise(
        "pointwise",
        rows,
        cols,
        variant=variants(variant),
        dtype=names(dtype),
        direction=_directions(direction),
    )
    more = {
        "inputs": ranges.read(inputs, "--inputs"),
        "outputs": ranges.read(outputs, "--outputs"),
    }
    return Cases(cases.make, {**cases.values, **more}, cases.kinds)


def quantise(
    rows: Rows = "4096",
    cols: Cols = "4096",
    dtype: Dtype = "bf16",
    output_dtype: Annotated[
        str, typer.Option("--output-dtype", metavar="TYPE", help="Type written.")
    ] = "fp8",
) -> Cases:
    """Quantisation of rows x cols, by default bf16 to fp8."""
    return _rowwise("quantise", rows, cols, dtype=names(dtype), output_dtype=names(output_dtype))


OPERATORS = (attention, gemm, softmax, layernorm, rmsnorm, pointwise, quantise)


def command(
    operator: Callable[..., Cases], action: Callable[..., None], examples: str
) -> Callable[..., None]:
    """A command with the options of `operator` and of `action`, which is given the cases first."""
    own = inspect.signature(operator, eval_str=True).parameters
    rest = list(inspect.signature(action, eval_str=True).parameters.values())[1:]

    def run(**options: Any) -> None:
        chosen = {name: options.pop(name) for name in own}
        action(operator(**chosen), **options)

    parameters = [item.replace(kind=item.KEYWORD_ONLY) for item in (*own.values(), *rest)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__name__ = operator.__name__
    run.__doc__ = f"{operator.__doc__}\n\n{examples}"
    return run
