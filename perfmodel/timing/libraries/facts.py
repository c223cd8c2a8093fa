"""What a library's kernel does, as facts: kernels of attention, of products and of rows.

A fact is discrete, or stated by the library's source or a microbenchmark of it. None depends on
sizes, and none names a constant of the model. `Annotated` has the unit, the string below a field
its meaning: both are in the JSON Schema and in `perfmodel show implementation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated, Any, Literal

from perfmodel.timing.architectures import Architecture, Copies
from perfmodel.timing.architectures import Instruction as Native
from perfmodel.timing.libraries.rules import (
    EvenRule,
    GraphRule,
    HeadRule,
    SegmentRule,
    SplitRule,
    WaveRule,
)

TileRow = tuple[int, int, int]
"""Rows, columns and threads of a block's tile."""
Menus = Mapping[int, tuple[TileRow, ...]]
"""Menus of tiles by the largest size that each serves; under 0 a menu for any size."""
MatrixInstruction = Literal["register", "native", "vector"]
Overlap = Literal["none", "warps", "pipelined"]
AttentionSchedule = Literal["standard", "tiled-1", "tiled-2", "tiled-3"]
# Rows and keys of the least tile: those of one matrix instruction.
_LEAST = 16
RowOperator = Literal["softmax", "layernorm", "rmsnorm", "pointwise", "quantise", "rowwise"]


@dataclass(frozen=True)
class RunsOn:
    """Architectures that a kernel exists for, by what they can do; what is empty allows any."""

    instruction: tuple[Native, ...] = ()
    """Matrix instructions, one of which the architecture must have."""
    copies: tuple[Copies, ...] = ()
    """Ways in which tiles reach shared memory, one of which must be the architecture's."""
    architecture: tuple[str, ...] = ()
    """Names of architectures: where a library compiles for chips and not for what they can do."""

    def allows(self, architecture: Architecture) -> bool:
        """Whether the kernel exists for an architecture."""
        asked = (
            (self.instruction, architecture.instruction),
            (self.copies, architecture.copies),
            (self.architecture, architecture.name),
        )
        return all(not known or has in known for known, has in asked)


@dataclass(frozen=True)
class Caller:
    """How a framework calls a kernel: what it packs, where its caches lie, what it does before."""

    packed: bool = False
    """Whether sequences lie end to end, so that a block first reads where its own begins."""
    paged: bool = False
    """Whether keys and values are found page by page."""
    captured: bool = False
    """Whether decode is captured in CUDA graphs, with a fixed grid of slices."""
    copies: Annotated[float | None, "copies"] = None
    """Copies of the weights that a timing loop of its own goes round, where others have the usual
    number (`Run.copies`)."""
    fills: bool = False
    """Whether that loop has no more copies than fill the L2, and `copies` at most."""
    own_inputs: bool = False
    """Whether each copy of the weights has data of its own, which take turns too."""
    own_results: bool = False
    """Whether each copy of the weights has results of its own, which take turns too."""
    column_major: bool = False
    """Whether a library that stores matrices by columns is called directly, so that its rows are
    rows; frameworks that store by rows ask it for the transposed product."""
    activity: Annotated[float | None, "of random data"] = None
    """Switching activity of the data, where the harness's data are not those of the caller."""
    fewer_values: Annotated[tuple[int, int] | None, "elements"] = None
    """A head dimension of keys whose values have another one, and that one: tables name only the
    first."""
    uneven_writes: Annotated[int, "kernels"] = 1
    """Kernels that write keys and values of different head dimensions to the cache."""
    prompts: bool = False
    """Whether a sequence of one token runs as a prompt, and not as decode."""
    fresh: bool = False
    """Whether queries that come with all their keys read these as they come, before the cache."""
    windowless: bool = False
    """Whether keys that are read as they come are all seen, whatever the window."""
    writes_ahead: bool = False
    """Whether the kernel after the one that writes to the cache is launched before that one ends,
    where the architecture can (Hopper and later)."""
    narrowing: Annotated[int, "kernels"] = 0
    """Kernels that narrow new keys and values before they are written to a narrower cache; 0 where
    the writing kernel does."""
    query_narrowing: Annotated[int, "kernels"] = 1
    """Kernels that narrow queries for a narrower cache."""
    hands_wide: bool = False
    """Whether 16-bit queries, keys and values are handed over where the products take 8 bits."""
    start_seconds: Annotated[float | None, "s"] = None
    """What passes before the kernel beyond what the harness takes."""
    few_start_seconds: Annotated[float | None, "s"] = None
    """The same before a kernel of few rows, where it is another time."""
    host_seconds: Annotated[float | None, "s"] = None
    """Host time of a call that is not captured in a graph: no call is shorter."""


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """What kernels of every operator have."""

    name: str
    """What `--implementation` and a prediction call it."""
    library: str
    """The file of facts that it stands in."""
    operator: str
    """What it computes."""
    source: str
    """Where the facts come from."""
    runs_on: RunsOn = RunsOn()
    """Architectures that it exists for; elsewhere its `fallback` runs."""
    fallback: str | None = None
    """The kernel that runs where this one does not exist."""
    dispatches: bool = False
    """Whether its library itself calls the fallback there; otherwise a prediction says so."""
    caller: Caller = Caller()
    """How it is called: a circumstance that names.yaml knows of, and no fact of the library."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it takes a type, and a variant of a map."""
        return True


@dataclass(frozen=True, kw_only=True)
class MatrixFacts(KernelFacts):
    """What kernels of attention and of products have."""

    instruction: MatrixInstruction = "vector"
    """How it multiplies. `native`: by the fastest instruction of the device (wgmma, tcgen05, MFMA);
    `register`: by the one fed from registers (mma.sync); `vector`: on the vector unit."""
    overlap: Overlap = "none"
    """What hides work of other units under the matrix unit: `none`, `warps` of the same unit that
    are at another step, or a loop that is `pipelined` in software."""
    tiles: Annotated[Menus, "[rows, columns, threads]"] = field(default_factory=dict)
    """Tiles of a block: of attention by head dimension, of products by the most rows served; the
    last menu serves all beyond."""
    share: Annotated[float | None, "of the unit's rate"] = None
    """What its loop sustains of its unit's rate, where not the usual share (of attention the
    forward loop)."""
    prepares: Annotated[int, "kernels"] = 0
    """Small kernels launched before it: of attention before the one for many queries, about lengths
    of sequences; of products about scales, beside the kernel that narrows activations."""


@dataclass(frozen=True, kw_only=True)
class AttentionFacts(MatrixFacts):
    """What a kernel of attention does."""

    operator: Literal["attention"] = "attention"
    """What it computes."""
    schedule: AttentionSchedule
    """The loop order and fusion (perfmodel.schedules): unfused, or as FlashAttention-1, -2, -3."""
    head_dims: Annotated[tuple[int, ...], "elements"] = ()
    """Head dimensions that it is compiled for; others are padded to the next."""
    stages: Annotated[int, "buffers"] = 2
    """Buffers of the streamed operands (FlashAttention-2 has one of K and one of V)."""
    decode: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode, where it has others."""
    narrow: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of 8-bit keys and values, where it has others."""
    windowed: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles where a window hides keys, where it has others."""
    narrow_decode: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode over 8-bit keys that no window hides, where it has others."""
    sliced: Annotated[Menus | None, "[rows, keys, threads]"] = None
    """Tiles of decode where its host cuts keys, where it has others."""
    few_queries: Annotated[int, "queries"] = 0
    """Most queries of a group, its heads together, that tiles of decode serve where no window
    hides keys, and alone."""
    backward: Annotated[float | None, "of the matrix rate"] = None
    """What its backward loop sustains, where not the usual share."""
    passed_columns: Annotated[int | None, "columns of the result"] = None
    """Columns of the result that a warp makes, where scores pass through shared memory between the
    products: written once in 16 bits, read by every warp that shares their row."""
    ping_pong: bool = False
    """Whether one group of warps at a time does its softmax, while another multiplies."""
    specialises: bool = False
    """Whether some warps of a block only load, which is set up once."""
    packs: bool = False
    """Whether query heads of a key-value head share a tile of queries in prefill too."""
    resident: Annotated[int | None, "blocks a unit"] = None
    """Most blocks of a unit, where the launch bounds say."""
    split_rule: SplitRule | None = None
    """How it cuts keys into slices; without a rule the fastest number is taken."""
    even_rule: EvenRule | None = None
    """How it cuts keys into slices, where by even shares of all tiles."""
    wave_rule: WaveRule | None = None
    """How it cuts keys into slices, where by whole waves of blocks."""
    graph_rule: GraphRule | None = None
    """Slices of the keys in a framework's graphs."""
    segment_rule: SegmentRule | None = None
    """How it cuts keys into slices, where into so many for small grids."""
    head_rule: HeadRule | None = None
    """How a head is spread over blocks where queries stream under an outer loop over keys; without
    one a block takes a whole head."""
    combines_inside: bool = False
    """Whether the last block of a row adds its slices up, in the same kernel."""
    combines_ahead: bool = False
    """Whether the kernel that adds slices up is launched ahead and waits on the device."""
    combine_loads: Annotated[int, "slices"] = 0
    """Slices that the kernel which adds them up loads before it waits for them; 0 for all."""
    decoder: str | None = None
    """The kernel that runs decode, where another one does."""
    waits: Annotated[int, "loads a tile"] = 0
    """Loads of a tile of keys that a block waits for in turn, with nothing else of it under way: 2
    where keys and values have one buffer each, filled through registers; 0 where tiles are loaded
    ahead."""
    mask_ops: Annotated[int, "instructions a score"] = 0
    """Integer instructions of a score for each edge of its mask and for its selection, in every
    tile that is visited; 0 where one each is left, in the tiles alone that an edge cuts."""
    widening_ops: Annotated[int, "instructions an element"] = 0
    """Integer instructions in which a block turns each 8-bit key and value that it streams into
    the type of the queries; 0 where the products take both types."""
    narrow_products: bool = False
    """Whether its products take the type of a narrower cache, queries being narrowed before."""
    adds_in_graphs: bool = False
    """Whether decode that is captured in graphs adds slices up even where there is one."""
    grid_slices: Annotated[int, "slices"] = 0
    """Slices of decode's grid, and of what adds them up, whichever of them have keys; 0 where the
    grid has those alone."""
    adds_plainly: bool = False
    """Whether the kernel that adds slices up has no statistics to gather first."""
    searches: bool = False
    """Whether a block finds its sequence by halving the list of where they begin."""
    compiled_by_rows: bool = False
    """Whether a compiler takes the native instruction where a tile has its rows, part of its rate
    where it has half of them, and the one fed from registers below."""
    turns_at: Annotated[tuple[int, ...] | None, "elements"] = None
    """Head dimensions, as compiled, at which groups of warps take turns at their exponentials; at
    others these and the vector work around them are one chain. None where all are alike."""
    walks: bool = False
    """Whether its loop begins at the first key under a window too, and tests in each tile whether
    any score of it is seen."""
    prepares_decode: bool = False
    """Whether these are launched before decode too."""
    regroups: bool = False
    """Whether decode with grouped queries copies them, and the result, into another order; where a
    window hides keys each head is then by itself, and its keys are not cut."""
    pages_by_decode: bool = False
    """Whether its decode kernel runs all queries where keys lie in pages."""
    narrow_pages_to: Annotated[int | None, "elements"] = None
    """Head dimension up to which 8-bit pages leave registers for overlap."""
    aligned_windows: bool = False
    """Whether a window's first key is the first of a tile; else it lies anywhere in one."""
    transposes: bool = False
    """Whether warps that load 8-bit values transpose them in shared memory."""

    def menu(
        self, head_dim: int, *, decode: bool, narrow: bool = False, windowed: bool = False
    ) -> tuple[TileRow, ...]:
        """Tiles for the smallest listed head dimension that holds `head_dim`.

        `narrow` asks for those of 8-bit keys and values, `windowed` for those where a window hides
        keys: the usual ones where the library has no others.
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
        """The class with one more tile in each menu, half of the last one along its longer side.

        Libraries compile for devices they know; where none of a menu's tiles fits, what they would
        launch is taken for a smaller one, down to the 16 by 16 of the least instruction.
        """
        names = ("tiles", "decode", "narrow", "windowed", "narrow_decode", "sliced")
        menus: dict[str, Any] = {name: getattr(self, name) for name in names}
        halves: dict[str, Any] = {name: _halved(menu) for name, menu in menus.items() if menu}
        return replace(self, **halves)

    def first_fitting(
        self, menu: tuple[TileRow, ...], held: Callable[[TileRow], float], capacity: float
    ) -> TileRow:
        """The first tile of a menu whose footprint fits (libraries dispatch so); else the last."""
        return next((tile for tile in menu if held(tile) <= capacity), menu[-1])


def _halved(menus: Menus) -> Menus:
    """Menus with a last tile of half the keys, or of half the rows where these are more."""
    found = {}
    for dim, menu in menus.items():
        rows, keys, threads = menu[-1]
        if max(rows, keys) <= _LEAST:
            found[dim] = menu
            continue
        taller = rows > keys
        half = (max(rows // 2, _LEAST), keys) if taller else (rows, max(keys // 2, _LEAST))
        found[dim] = (*menu, (*half, max(threads // 2 if taller else threads, 64)))
    return found


@dataclass(frozen=True, kw_only=True)
class GemmFacts(MatrixFacts):
    """What a kernel of matrix products does."""

    operator: Literal["gemm"] = "gemm"
    """What it computes."""
    formats: tuple[str, ...]
    """Types of products that it takes."""
    splits: Annotated[tuple[int, ...], "slices"] = (1,)
    """Numbers of slices of k that it may take."""
    sliced_waves: Annotated[float, "waves"] = inf
    """Waves, of a block a unit, that tiles and slices of k come to at most."""
    slim_columns: Annotated[int, "columns"] = 0
    """Tiles of fewer columns serve products of no more columns than they have."""
    few_rows: Annotated[int, "rows"] = 0
    """Most rows that a kernel without matrix instructions serves; 0 where there is none."""
    few_load: Annotated[int, "bytes"] = 0
    """Bytes of weights that a thread loads at a time in the kernel for the fewest rows; 0 where
    there is none without matrix instructions."""
    specialises: bool = True
    """Whether, with tensor copies, blocks stay for tile after tile, some of their warps only load,
    and pairs of blocks share what they load."""
    cluster: Annotated[int, "blocks"] = 1
    """Row blocks that start together or not at all."""
    swizzles: bool = True
    """Whether blocks are launched in groups that share operands in L2."""
    step_cycles: Annotated[float, "cycles"] = 0.0
    """Steps of a tile of k that wait for each other, and for which the next tile's wait: scales
    that have to be fetched, applied or moved before it is multiplied."""
    promoted: bool = False
    """Whether block scales are applied outside the matrix instruction, on fp32 sums."""
    quantises: bool = False
    """Whether its library narrows the activations in each call, whether a row says so or not."""
    quantiser: str = "vllm-quantise"
    """The kernel that narrows the activations, where a call does so."""
    batched: str | None = None
    """The kernel that runs strided batches, where another one does."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it takes a type of products."""
        return dtype in self.formats


@dataclass(frozen=True)
class Chain:
    """An operator as a chain of framework operators."""

    kernels: Annotated[int, "kernels"] = 1
    """Kernels launched one after another."""
    streams: Annotated[int, "tensors"] = 1
    """Tensors that they read together."""
    steps: Annotated[tuple[tuple[str, str, float], ...], "[type, type, operations]"] = ()
    """Where each kernel is known, in place of both: the types that it reads and writes (`data` is
    the problem's own) and the integer operations of an element beyond a copy's."""
    start_seconds: Annotated[float, "s"] = 0.0
    """What each of those kernels sets up before its first load, at 1.75 GHz."""


@dataclass(frozen=True)
class Rows:
    """How a row-wise kernel lays out a row. Operations beyond the algorithm's are the forward
    pass's."""

    held_columns: Annotated[int, "elements"]
    """Longest row that stays in registers; longer ones are streamed."""
    elements_per_thread: Annotated[int, "elements"]
    """Elements of a row for which one more thread is taken."""
    most_threads: Annotated[int, "threads"]
    """Most threads of a row."""
    passes: Annotated[int, "passes"]
    """Times that a streamed row is read."""
    load: Annotated[int, "elements"]
    """Elements of one load of a thread; what is left of a streamed row goes one at a time."""
    held_load: Annotated[int, "elements"] = 4
    """Elements of one load where the row stays in registers."""
    group: Annotated[int, "elements"] = 0
    """Elements of a row that are scaled by themselves, as a row of its own each; 0 for all."""
    wide: bool = False
    """Whether loads have a fixed width in bytes: `load` is stated for fp32, and narrower types have
    more elements in one."""
    leftover: bool = False
    """Whether elements beyond rounds of whole loads of all threads go one at a time, a round of
    threads after the other, and so do the first of a row that starts unaligned."""
    shared_rows: bool = False
    """Whether rows of whole loads stay in shared memory, as far as that of a plain launch holds
    them, all of which a block asks for."""
    shuffles: bool = False
    """Whether a block folds partial results by shuffles, warps' ones by one more warp: half of the
    dependent steps of a fold through shared memory, by one thread in the end."""
    strided: bool = False
    """Whether threads stride over whole loads to the end of a row, so that no whole load goes one
    element at a time."""
    power_of_two: bool = False
    """Whether the number of threads is rounded up to a power of two."""
    least_threads: Annotated[int, "threads"] = 32
    """Fewest threads of a row."""
    stages: Annotated[int, "buffers"] = 3
    """One more than the loads of a thread that are in flight."""
    waits: Annotated[float, "loads"] = 0.0
    """Further loads that a row waits for, one after another."""
    dependent_ops: Annotated[float, "operations"] = 0.0
    """Operations of a round of loads that wait for each other."""
    vector_ops: Annotated[float, "operations"] = 0.0
    """Vector operations of an element beyond the algorithm's own."""
    special_ops: Annotated[float, "operations"] = 0.0
    """Special-function operations of an element beyond the algorithm's own."""
    integer_ops: Annotated[float, "operations"] = 0.0
    """Integer operations of an element beyond the algorithm's own: conversions in software."""
    again_vector_ops: Annotated[float, "operations"] = 0.0
    """Further vector operations of an element of a streamed row."""
    again_special_ops: Annotated[float, "operations"] = 0.0
    """Further special-function operations of an element of a streamed row."""
    folded_vector_ops: Annotated[float, "operations"] = 0.0
    """Vector operations of a thread and row in each of the five steps of a warp reduction."""
    folded_special_ops: Annotated[float, "operations"] = 0.0
    """Special-function operations of a thread and row in each step of a warp reduction."""


@dataclass(frozen=True, kw_only=True)
class RowFacts(KernelFacts):
    """What a kernel of rows or of elements does."""

    operator: RowOperator
    """What it computes; `rowwise` is any of the others."""
    rows: Rows | None = None
    """How it lays out a row; without this it is a map over all elements."""
    chain: Chain | None = None
    """The framework operators that it is a chain of, where no single kernel computes it."""
    cut: Chain | None = None
    """What runs instead where rows are too few for the units, and cut: kernels that reduce pieces
    and then their results, and one that goes over all rows again."""
    cut_columns: Annotated[int, "elements"] = 0
    """Longest row that is not cut."""
    cut_rows: Annotated[int, "rows a unit"] = 0
    """Rows for each unit from which none is cut."""
    types: tuple[str, ...] = ()
    """The types that it takes, where not all."""
    variants: tuple[str, ...] = ()
    """The element-wise maps that it computes, where not all."""
    tensors: Annotated[Mapping[str, int], "tensors"] = field(default_factory=dict)
    """Operands of a map that are whole tensors; the others are scalars or small."""
    accurate: bool = False
    """Whether special functions are computed to the last bit, which takes further operations."""
    compiled: Annotated[Mapping[str, tuple[float, float, float]], "operations an element"] = field(
        default_factory=dict
    )
    """Operations in the code of a map, where they are far from the textbook's: floating-point, on
    integer lanes (comparisons, selections), special or conversions."""
    gradient_kernel: str | None = None
    """The kernel that computes the gradients, where it lays rows out in another way."""
    gradient_product: bool = False
    """Whether its backward pass first multiplies gradient and result in a kernel of its own."""

    def computes(self, dtype: str, variant: str) -> bool:
        """Whether it takes a type, and computes a map where that is asked."""
        takes = not self.types or dtype in self.types
        return takes and (not self.variants or variant in self.variants)


KINDS: Mapping[str, type[KernelFacts]] = {
    "attention": AttentionFacts,
    "gemm": GemmFacts,
    **dict.fromkeys(RowOperator.__args__, RowFacts),  # type: ignore[attr-defined]
}
"""The facts of each operator's kernels."""
GIVEN = ("name", "library", "caller")
"""Fields that no entry of a file states: they follow from where it stands and who calls it."""
