"""What a library's kernel does, as facts: kernels of attention, of matrix products and of rows.

A fact is discrete, or it is stated by the library's source or a microbenchmark of the library. No
fact depends on sizes or names a constant of the model. `Annotated` has the unit; the string below a
field is its meaning. Both appear in the JSON Schema and in `perfmodel show implementation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import inf
from typing import Annotated, Any, Literal, get_args

from perfmodel.frozen import dataclass
from perfmodel.timing.architectures import Architecture, Copies
from perfmodel.timing.architectures import Instruction as Native
from perfmodel.timing.cuts import Cut
from perfmodel.timing.libraries.route import Route

TileRow = tuple[int, int, int]
"""Rows, columns and threads of a block's tile."""
Menus = Mapping[int, tuple[TileRow, ...]]
"""Menus of tiles by the largest size that each serves; key 0: a menu for any size."""
MatrixInstruction = Literal["register", "native", "vector"]
Overlap = Literal["none", "warps", "pipelined"]
AttentionSchedule = Literal["standard", "tiled-1", "tiled-2", "tiled-3"]
# Rows and keys of the smallest tile: those of one matrix instruction.
_LEAST = 16
RowOperator = Literal["softmax", "layernorm", "rmsnorm", "pointwise", "quantise", "rowwise"]
ROW_OPERATORS: tuple[str, ...] = get_args(RowOperator)
"""The operators of row-wise kernels."""


@dataclass(frozen=True)
class RunsOn:
    """Architectures that a kernel exists for, by capability; an empty field allows any."""

    instruction: tuple[Native, ...] = ()
    """Matrix instructions, one of which the architecture must have."""
    copies: tuple[Copies, ...] = ()
    """Ways in which tiles reach shared memory; the architecture must use one of them."""
    architecture: tuple[str, ...] = ()
    """Names of architectures, where a library compiles for named chips."""

    def allows(self, architecture: Architecture) -> bool:
        """Whether the kernel exists for an architecture."""
        conditions = (
            (self.instruction, architecture.instruction),
            (self.copies, architecture.copies),
            (self.architecture, architecture.name),
        )
        return all(not known or has in known for known, has in conditions)


@dataclass(frozen=True)
class Caller:
    """How a framework calls a kernel: packed sequences, paged caches, work before the kernel."""

    packed: bool = False
    """Whether sequences are packed end to end, so that a block first reads where its own begins."""
    paged: bool = False
    """Whether the KV cache is paged."""
    captured: bool = False
    """Whether decode is captured in CUDA graphs, with a fixed grid of slices."""
    column_major: bool = False
    """Whether a column-major library is called directly, without the transposition of row-major
    frameworks, which call it for the transposed product."""
    activity: Annotated[float | None, "of random data"] = None
    """Switching activity of the data, where it differs from the harness's."""
    turns: tuple[str, ...] | None = None
    """Roles of the tensors whose copies take turns in its timing loop; None: weights."""
    fewer_values: Annotated[tuple[int, int] | None, "elements"] = None
    """A head dimension of keys, and that of the values that go with it, for tables that name only
    the first."""
    uneven_writes: Annotated[int, "kernels"] = 1
    """Kernels that write keys and values of different head dimensions to the cache."""
    prompts: bool = False
    """Whether a sequence of one token runs as a prompt, not as decode."""
    fresh: bool = False
    """Whether prompts without cached keys read their own keys and values directly instead of
    through the cache."""
    windowless: bool = False
    """Whether such prompts ignore the window."""
    writes_ahead: bool = False
    """Whether the kernel after the cache write is launched before the cache write ends, where the
    architecture can (Hopper and later)."""
    narrowing: Annotated[int, "kernels"] = 0
    """Kernels that convert new keys and values to a narrower type before the cache write; 0 where
    the cache write converts."""
    query_narrowing: Annotated[int, "kernels"] = 1
    """Kernels that convert queries to the type of a narrower cache."""
    hands_wide: bool = False
    """Whether queries, keys and values are passed in 16 bits where the products take 8 bits."""
    start_seconds: Annotated[float | None, "s"] = None
    """Seconds before the kernel, beyond the harness's start."""
    few_start_seconds: Annotated[float | None, "s"] = None
    """The same before a kernel of few rows, where it differs."""
    host_seconds: Annotated[float | None, "s"] = None
    """Host seconds of a call that is not captured in a graph: a lower bound of its time."""


@dataclass(frozen=True)
class Combine:
    """How the slices of a row are added up: by a kernel of its own, or inside the kernel."""

    inside: bool = False
    """Whether the last block of a row adds the slices up in the same kernel."""
    in_graphs: bool = False
    """Whether the combining kernel runs in CUDA graphs even with one slice."""
    slices: Annotated[int, "slices"] = 0
    """Slices of the grid and of the combining kernel, with or without keys; 0: only slices with
    keys."""


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """Facts of kernels of every operator."""

    name: str
    """Name for `--implementation` and in predictions."""
    library: str
    """The file of facts that has the kernel."""
    operator: str
    """What it computes."""
    source: str
    """Where the facts come from."""
    about: str = ""
    """What it does that its facts do not say: one line, for lists."""
    runs_on: RunsOn = RunsOn()
    """Architectures that it exists for; elsewhere its `fallback` runs."""
    fallback: str | None = None
    """The kernel that runs where this one does not exist."""
    dispatches: bool = False
    """Whether its library itself calls the fallback; if not, a prediction with the fallback says
    so."""
    caller: Caller = Caller()
    """How it is called, from names.yaml: not a fact of the library."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it supports a type, and a variant of a map."""
        return True


@dataclass(frozen=True, kw_only=True)
class MatrixFacts(KernelFacts):
    """Facts of kernels of attention and of matrix products."""

    instruction: MatrixInstruction = "vector"
    """How it multiplies. `native`: by the fastest instruction of the device (wgmma, tcgen05, MFMA);
    `register`: by the one fed from registers (mma.sync); `vector`: on the vector unit."""
    overlap: Overlap = "none"
    """What hides the work of other units under the matrix unit: `none`, other `warps` of the same
    unit, or a loop that is software-`pipelined`."""
    tiles: Annotated[Menus, "[rows, columns, threads]"] = field(default_factory=dict)
    """Tiles of a block: of attention by head dimension, of products by the most rows served; the
    last menu serves all larger sizes."""
    share: Annotated[float | None, "of the unit's rate"] = None
    """Share of its unit's rate that its loop (of attention the forward loop) sustains, where not
    the usual one."""
    widening_ops: Annotated[int, "instructions an element"] = 0
    """Instructions that convert each streamed element of a narrow operand to the type that is
    multiplied: 8-bit keys and values beside 16-bit queries (integer ones; 0 where the products take
    both types), weights of few bits (0: one, unpacked and scaled two at a time)."""
    prepares: Annotated[int, "kernels"] = 0
    """Small kernels launched before it. For attention they compute sequence offsets before a kernel
    for many queries. For products they prepare scales, besides the kernel that quantises
    activations."""


@dataclass(frozen=True, kw_only=True)
class AttentionFacts(MatrixFacts):
    """Facts of a kernel of attention."""

    operator: Literal["attention"] = "attention"
    """What it computes."""
    schedule: AttentionSchedule
    """The loop order and fusion (perfmodel.schedules): unfused, or as FlashAttention-1, -2, -3."""
    head_dims: Annotated[tuple[int, ...], "elements"] = ()
    """Head dimensions that it is compiled for; others are padded to the next."""
    stages: Annotated[int, "buffers"] = 2
    """Buffers of the streamed operands (FlashAttention-2 has one of K and one of V)."""
    decode: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode, where they differ."""
    narrow: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of 8-bit keys and values, where they differ."""
    windowed: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles where a window hides keys, where they differ."""
    narrow_decode: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode over 8-bit keys without a window that hides some, where they differ."""
    sliced: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode where its host cuts the keys into slices, where they differ."""
    backward: Annotated[float | None, "of the matrix rate"] = None
    """Share of the matrix rate that its backward loop sustains, where not the usual one."""
    passed_columns: Annotated[int | None, "columns of the result"] = None
    """Columns of the result that a warp computes, where scores pass through shared memory between
    the products: written once in 16 bits, read by every warp that shares their row."""
    steps: Annotated[int, "steps"] = 0
    """Block-wide steps of a block outside its loop over the keys, each behind a barrier; resident
    blocks share their time as they share that of starting."""
    holds_queries: bool = False
    """Whether a block of many queries keeps them in registers, not in shared memory."""
    specialises: bool = False
    """Whether some warps of a block only load (warp specialisation), which is set up once."""
    packs: bool = False
    """Whether the query heads of a key-value head share a tile of queries in prefill too."""
    resident: Annotated[int | None, "blocks a unit"] = None
    """Most resident blocks of a unit, where the launch bounds set it."""
    cut: Cut | None = None
    """The rule by which it cuts the keys, or a head, into slices; None: the fastest number of
    slices is taken, and a block takes a whole head."""
    combine: Combine = Combine()
    """How the slices are added up."""
    decoder: str | None = None
    """The kernel that runs decode, where it is another one."""
    where: tuple[Route, ...] = ()
    """Problems that the library sends to other kernels; the first that holds is taken."""
    other_dims: str | None = None
    """The kernel that runs head dimensions that are not in `head_dims`; None: they are padded."""
    waits: Annotated[int, "loads a tile"] = 0
    """Loads of a tile of keys that a block waits for in turn while it does nothing else: 2 where
    keys and values have one buffer each, filled through registers; 0 where tiles are loaded ahead.
    """
    mask_ops: Annotated[int, "instructions a score"] = 0
    """Integer instructions a score for each edge of the mask and for the selection, in every
    visited tile; 0: one each, and only in tiles that an edge cuts."""
    rounding_ops: Annotated[float | None, "instructions a score"] = None
    """Integer instructions that round a probability to bf16 where the architecture has none that
    converts it; None: those of rounding to the nearest even (`bf16_ops` of the architecture)."""
    narrow_products: bool = False
    """Whether its products run in the type of a narrower cache, to which queries are converted
    first."""
    searches: bool = False
    """Whether a block finds its sequence by binary search in the list of sequence starts."""
    turns_at: Annotated[tuple[int, ...] | None, "elements"] = None
    """Head dimensions, as compiled, at which groups of warps alternate at their exponentials; at
    others the exponentials and the vector work around them are one dependent chain. None: all are
    alike."""
    walks: bool = False
    """Whether its loop begins at the first key even under a window, and tests in each tile whether
    any score is visible."""
    prepares_decode: bool = False
    """Whether the kernels of `prepares` are launched before decode too."""
    regroups: bool = False
    """Whether decode with grouped queries copies queries and result into another order. Where a
    window hides keys, each head then runs alone, and its keys are not cut."""
    pages_by_decode: bool = False
    """Whether its decode kernel runs all queries over a paged cache."""
    transposes: bool = False
    """Whether warps that load 8-bit values transpose them in shared memory."""

    def menu(
        self, head_dim: int, *, decode: bool, narrow: bool = False, windowed: bool = False
    ) -> tuple[TileRow, ...]:
        """Tiles for the smallest listed head dimension that is at least `head_dim`.

        `narrow` selects the menu for 8-bit keys and values, `windowed` the one where a window hides
        keys; the usual menu is returned where the library has no such menu.
        """
        table = self.tiles
        if decode and narrow and not windowed and self.narrow_decode is not None:
            table = self.narrow_decode
        elif narrow and self.narrow is not None:
            table = self.narrow
        elif windowed and self.windowed is not None:
            table = self.windowed
        elif decode and self.decode is not None:
            table = self.decode
        fitting = [dim for dim in sorted(table) if dim >= head_dim]
        return table[fitting[0]] if fitting else table[max(table)]

    def smaller(self) -> AttentionFacts:
        """The class with one more tile in each menu: the last tile, halved along its longer side.

        Libraries compile tiles for known devices. Where no tile of a menu fits, the library is
        assumed to launch a smaller one, down to 16 by 16.
        """
        names = ("tiles", "decode", "narrow", "windowed", "narrow_decode", "sliced")
        menus: dict[str, Any] = {name: getattr(self, name) for name in names}
        halves: dict[str, Any] = {name: _longer_menus(menu) for name, menu in menus.items() if menu}
        return replace(self, **halves)

    def first_fitting(
        self, menu: tuple[TileRow, ...], held: Callable[[TileRow], float], capacity: float
    ) -> TileRow:
        """The first tile of a menu whose footprint fits (as libraries dispatch); else the last."""
        return next((tile for tile in menu if held(tile) <= capacity), menu[-1])


def _longer_menus(menus: Menus) -> Menus:
    """Menus with one more tile: the last one with half the keys, or with half the rows if it has
    more rows."""
    halves = {}
    for dim, menu in menus.items():
        rows, keys, threads = menu[-1]
        if max(rows, keys) <= _LEAST:
            halves[dim] = menu
            continue
        taller = rows > keys
        half = (max(rows // 2, _LEAST), keys) if taller else (rows, max(keys // 2, _LEAST))
        halves[dim] = (*menu, (*half, max(threads // 2 if taller else threads, 64)))
    return halves


@dataclass(frozen=True, kw_only=True)
class GemmFacts(MatrixFacts):
    """Facts of a kernel of matrix products."""

    operator: Literal["gemm"] = "gemm"
    """What it computes."""
    formats: tuple[str, ...]
    """Types of products that it supports."""
    splits: Annotated[tuple[int, ...], "slices"] = (1,)
    """Numbers of slices of k (split-K) that it may use."""
    sliced_waves: Annotated[float, "waves"] = inf
    """Most waves, at one block a unit, of a grid whose k is sliced."""
    slim_columns: Annotated[int, "columns"] = 0
    """Tiles with fewer columns than this serve only products with no more columns than the tile."""
    few_rows: Annotated[int, "rows"] = 0
    """Most rows of a product that a kernel without matrix instructions serves; 0: there is none."""
    few_load: Annotated[int, "bytes"] = 0
    """Bytes of weights in one load of a thread, in the kernel without matrix instructions for the
    fewest rows; 0: there is none."""
    specialises: bool = True
    """Whether, with tensor copies, blocks are persistent, some of their warps only load, and pairs
    of blocks share loads."""
    held_steps: Annotated[int, "buffers"] = 0
    """Most steps of k that a block holds at once; 0: as many as fit."""
    step_cycles: Annotated[float, "cycles"] = 0.0
    """Cycles of dependent steps a tile of k, which the next tile's steps follow: scales that are
    fetched, applied or moved before the multiplication."""
    group_waits: Annotated[float, "loads"] = 0.0
    """Memory accesses that wait for each other when a persistent block comes to a tile of another
    group: tensor maps are written, fenced and fetched."""
    starts_ahead: tuple[Native, ...] = ()
    """Matrix instructions of the devices on which its blocks start before the kernel before ends
    (programmatic dependent launch)."""
    promoted: bool = False
    """Whether block scales are applied outside the matrix instruction, on fp32 sums."""
    quantises: bool = False
    """Whether its library quantises the activations in each call, whether a row says so or not."""
    quantiser: str = "vllm-quantise"
    """The kernel that quantises the activations."""
    batched: str | None = None
    """The kernel that runs strided batches, where it is another one."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it supports a type of products."""
        return dtype in self.formats


@dataclass(frozen=True)
class Chain:
    """An operator that a framework computes as a chain of kernels."""

    kernels: Annotated[int, "kernels"] = 1
    """Kernels, launched one after another."""
    streams: Annotated[int, "tensors"] = 1
    """Tensors that the kernels read, in total."""
    steps: Annotated[tuple[tuple[str, str, float], ...], "[type, type, operations]"] = ()
    """Each kernel of the chain, instead of `kernels` and `streams`: the types that it reads and
    writes, and its integer operations an element beyond a copy's. `data` is the problem's own type,
    `fp32+fp32` two tensors, and `row` one number a row or column."""


@dataclass(frozen=True)
class Pieces:
    """Rows that are cut: kernels that reduce pieces, then their results, and one more over all
    rows."""

    kernels: Annotated[int, "kernels"]
    """Kernels, launched one after another."""
    streams: Annotated[int, "tensors"]
    """Tensors that the kernels read, in total."""
    columns: Annotated[int, "elements"]
    """Longest row that is not cut."""
    rows: Annotated[int, "rows a unit"]
    """Rows a unit from which no row is cut."""


@dataclass(frozen=True)
class Rows:
    """How a row-wise kernel lays out a row. Operations beyond the algorithm's are those of the
    forward pass."""

    held_columns: Annotated[int, "elements"]
    """Longest row that stays in registers; longer ones are streamed."""
    elements_per_thread: Annotated[int, "elements"]
    """Most elements of a row for each thread, which sets the number of threads."""
    most_threads: Annotated[int, "threads"]
    """Most threads of a row."""
    passes: Annotated[int, "passes"]
    """Number of times that a streamed row is read."""
    load: Annotated[int, "elements"]
    """Elements of one load of a thread; the rest of a streamed row is loaded element by element."""
    group: Annotated[int, "elements"] = 0
    """Elements of a row with their own scale, treated as a row each; 0: the whole row."""
    leftover: bool = False
    """Whether elements beyond full rounds of whole loads are loaded element by element, in rounds
    of all threads, as are the first of a row that starts unaligned."""
    shared_rows: bool = False
    """Whether rows of whole loads stay in shared memory, up to the size of a launch without opt-in;
    a block then requests all of that size."""
    shuffles: bool = False
    """Whether a block reduces by warp shuffles, the partial results of the warps in one more warp.
    It has half of the dependent steps of a reduction through shared memory that ends in one thread.
    """
    strided: bool = False
    """Whether threads stride over whole loads to the end of a row, so that no whole load is split
    into elements."""
    power_of_two: bool = False
    """Whether the number of threads is rounded up to a power of two."""
    least_threads: Annotated[int, "threads"] = 32
    """Fewest threads of a row."""
    stages: Annotated[int, "buffers"] = 3
    """Loads of a thread in flight, plus one."""
    waits: Annotated[float, "loads"] = 0.0
    """Further dependent loads of a row."""
    special_ops: Annotated[float, "operations"] = 0.0
    """Special-function operations an element beyond the algorithm's."""
    integer_ops: Annotated[float, "operations"] = 0.0
    """Integer operations an element beyond the algorithm's: conversions in software."""
    again_special_ops: Annotated[float, "operations"] = 0.0
    """Further special-function operations an element of a streamed row."""
    folded_vector_ops: Annotated[float, "operations"] = 0.0
    """Vector operations, a thread and row, in each of the five steps of a warp reduction."""


@dataclass(frozen=True, kw_only=True)
class RowFacts(KernelFacts):
    """Facts of a row-wise or element-wise kernel."""

    operator: RowOperator
    """What it computes; `rowwise` stands for all the others."""
    rows: Rows | None = None
    """How it lays out a row; None: it is a map over all elements."""
    chain: Chain | None = None
    """The framework operators that compute it in a chain, where no single kernel does."""
    pieces: Pieces | None = None
    """How rows that are too few for the units are cut into pieces; None: they are not."""
    types: tuple[str, ...] = ()
    """Types that it supports; empty: all."""
    variants: tuple[str, ...] = ()
    """Element-wise maps that it computes; empty: all."""
    tensors: Annotated[Mapping[str, int], "tensors"] = field(default_factory=dict)
    """Operands of a map that are whole tensors; the rest are scalars or small."""
    accurate: bool = False
    """Whether special functions are correctly rounded, which takes further operations."""
    compiled: Annotated[Mapping[str, tuple[float, float, float]], "operations an element"] = field(
        default_factory=dict
    )
    """Operations in the compiled code of a map, where they differ much from the textbook's:
    floating-point, integer lanes (comparisons, selections), special functions or conversions."""
    gradient_kernel: str | None = None
    """The kernel that computes the gradients, where its row layout is another one."""
    gradient_product: bool = False
    """Whether its backward pass first multiplies gradient and result in a separate kernel."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it supports a type, and a map where one is given."""
        takes = not self.types or dtype in self.types
        return takes and (not self.variants or variant in self.variants)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A kernel of a chain: some operator, at sizes that follow from those of the chain."""

    operator: str
    """The operator whose problem it is."""
    sizes: Mapping[str, Any]
    """Its options: sizes as expressions of the parameters of the chain's operator, names and flags
    as they are. A type may be that of a role: `data`, `kv`."""
    kernel: str | None = None
    """The kernel that runs it; None: a good library's."""
    times: Any = 1
    """How often it is launched; an expression, whose value may be 0."""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Types of `dtype` or of a role with which it is launched; empty: with any."""
    direction: Literal["fwd", "bwd"] = "fwd"
    """The pass that it belongs to."""
    part: str = ""
    """The word of the timed region that it is: routing. Where the region is said, only those in it
    run; without a word it always runs."""


@dataclass(frozen=True, kw_only=True)
class Sending:
    """How a kernel sends tokens to the ranks that hold their experts, or their results back."""

    copies: Literal["ranks", "choices"]
    """Whether a token is sent once to each rank that holds some of its experts, or once for each of
    its experts."""
    start_seconds: Annotated[float, "s"]
    """Seconds of barriers and of counts that are exchanged, before and after the tokens."""
    units: Annotated[int, "units"] = 0
    """Units that it runs on, where the caller states none; 0: all."""
    unit_bytes: Annotated[float, "B/clk"] = inf
    """Bytes a cycle that each of these units moves."""
    copy_cycles: Annotated[float, "cycles"] = 0.0
    """Cycles of a unit for each copy of a token besides its bytes: its place is taken and told."""
    link_share: Annotated[float, "of the link's rate"] = 1.0
    """Share of the link's documented bandwidth that it reaches."""
    most_tokens: Annotated[float, "tokens"] = inf
    """Tokens of a rank that its buffers hold, above which a dispatcher takes its next kernel."""


@dataclass(frozen=True, kw_only=True)
class ChainFacts(KernelFacts):
    """What a library launches for a declared operator: kernels one after another, or the operator's
    own steps."""

    operator: str
    """The declared operator."""
    launches: tuple[Launch, ...] = ()
    """Its kernels, in launch order."""
    fusion: Literal["", "auto", "fused", "unfused"] = ""
    """Where it has no launches: the operator's own steps share one kernel (`fused`), have a kernel
    each (`unfused`), or are fused as is fastest (`auto`). Tiles are searched."""
    gradient_fusion: Literal["auto", "fused", "unfused"] = "auto"
    """How the steps of its backward pass are fused."""
    recompute: tuple[str, ...] | None = None
    """Tensors that its backward pass makes again; None: as the operator is declared."""
    formats: tuple[str, ...] = ()
    """Types that it supports; empty: all."""
    decoder: str | None = None
    """The chain that runs single queries, where it is another one."""
    sending: Sending | None = None
    """How tokens are sent to experts on other ranks; None: it has no part in that."""
    calls: Annotated[int, "calls"] = 0
    """Framework calls that it takes without a graph, views included; 0: one a kernel."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it supports a type."""
        return not self.formats or dtype in self.formats


KINDS: Mapping[str, type[KernelFacts]] = {
    "attention": AttentionFacts,
    "gemm": GemmFacts,
    **dict.fromkeys(ROW_OPERATORS, RowFacts),
}
"""The dataclass of facts for each operator with kernels of its own; of all others `ChainFacts`."""
GIVEN = ("name", "library", "caller")
"""Fields that no file entry states: they follow from the entry's place and caller."""
