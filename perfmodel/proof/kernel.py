"""A bundled kernel: the operator it computes, its launches, and the schedule that the model counts.

A kernel file describes its arrays and launches as data. The code here is shared by all kernels: it
draws inputs, poisons outputs, runs launches, makes type signatures for the compiler, and compares
results with the reference. The replay, the compiler and the timers use the same description, so
they all refer to the same launch.

torch and triton are imported only when tensors are made or a kernel is launched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

from perfmodel.arithmetic import Number
from perfmodel.elements import ElementType
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.schedules.schedule import Schedule

Role = Literal["input", "output", "scratch"]
Fill = Literal["normal", "zero", "derived"]
Tensors = dict[str, Any]

# Storage type → (torch type, Triton signature, bytes).
_STORAGE: Mapping[str, tuple[str, str, int]] = {
    "fp64": ("float64", "fp64", 8),
    "fp32": ("float32", "fp32", 4),
    "fp16": ("float16", "fp16", 2),
    "bf16": ("bfloat16", "bf16", 2),
    "fp8": ("float8_e4m3fn", "fp8e4nv", 1),
    "int8": ("int8", "i8", 1),
    "uint8": ("uint8", "u8", 1),
    "int32": ("int32", "i32", 4),
}


class KernelError(PerfmodelError):
    """A kernel that cannot be loaded, run or recorded here."""


class Problem(Protocol):
    """What this package uses of a problem: the extents of its axes and the types of its tensors."""

    def sizes(self) -> dict[str, Number]:
        """Extent of every axis."""

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""


@dataclass(frozen=True, slots=True)
class Array:
    """One array that a kernel reads or writes."""

    name: str
    """Its name."""
    shape: tuple[int, ...]
    """Its extents."""
    dtype: str
    """Type of its stored elements."""
    role: Role = "input"
    """Input, output or scratch."""
    tensor: str = ""
    """The algorithm's tensor that its bytes count as; empty: the array's own name."""
    fill: Fill = "normal"
    """Its contents before a run. Outputs and scratch are poisoned, unless `fill` is "zero" (the
    kernel adds to them). A "derived" input is computed by `derive` from the random inputs."""
    by_columns: bool = False
    """Whether the last two axes are stored in column-major order; the tensor still has `shape`."""

    @property
    def counted_as(self) -> str:
        """The algorithm's tensor that this array belongs to."""
        return self.tensor or self.name

    @property
    def item_bytes(self) -> int:
        """Bytes per stored element."""
        return _STORAGE[self.dtype][2]

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.item_bytes

    def laid_out(self, tensor: Any) -> Any:
        """A tensor of the array's shape with its memory in the array's order."""
        return tensor.mT.contiguous().mT if self.by_columns else tensor


DESCRIPTOR_ALIGNMENT = 16
"""Bytes. Every stride of a tensor descriptor but the last, and a row of its tile, must be a
multiple of this (CUDA Driver API, cuTensorMapEncodeTiled: globalStrides, boxDim). A launch that
breaks the rule destroys the device's context."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor over an array, made on the host and passed as an argument.

    Elements outside the shape are read as 0 and are not written.
    """

    array: str
    """The array."""
    shape: tuple[int, ...]
    """The array as the kernel indexes it, last axis contiguous."""
    block: tuple[int, ...]
    """The tile that one load or store moves."""
    swizzle_bytes: int = 0
    """Bytes of the tile's swizzle pattern in shared memory (NVMMASharedLayout), for Gluon; 0 for
    Triton's kernels, whose compiler chooses it."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, by axis."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def signature(self, kind: str) -> str:
        """Triton's type of the descriptor, with elements of Triton's type `kind`."""
        layout = ""
        if self.swizzle_bytes:
            bits = next(8 * size for _, name, size in _STORAGE.values() if name == kind)
            layout = f",NVMMASharedLayout({self.swizzle_bytes}, {bits}, {len(self.block)})"
        return f"tensordesc<{kind}{list(self.block)}{layout}>"

    def on(self, tensor: Any) -> Any:
        """Triton's descriptor over the array's tensor, or Gluon's if a swizzle is given."""
        shape = (list(self.shape), list(self.strides), list(self.block))
        if not self.swizzle_bytes:
            from triton.tools.tensor_descriptor import TensorDescriptor

            return TensorDescriptor(tensor, *shape)
        from triton.experimental.gluon import language
        from triton.experimental.gluon.nvidia import hopper

        bits, rank = 8 * tensor.element_size(), len(self.shape)
        layout = language.NVMMASharedLayout(self.swizzle_bytes, bits, rank)
        return hopper.TensorDescriptor(tensor, *shape, layout)

    def misalignment(self, item_bytes: int) -> str:
        """Which alignment rule is broken; empty if none is."""
        tile_bytes = self.block[-1] * item_bytes
        if tile_bytes < DESCRIPTOR_ALIGNMENT:
            return (
                f"a row of a tile of {self.array} has {tile_bytes} bytes, and a tensor descriptor "
                f"moves at least {DESCRIPTOR_ALIGNMENT}; take a wider tile"
            )
        for stride in self.strides[:-1]:
            if stride * item_bytes % DESCRIPTOR_ALIGNMENT:
                return (
                    f"rows of {self.array} are {stride * item_bytes} bytes apart, and a tensor "
                    f"descriptor needs a multiple of {DESCRIPTOR_ALIGNMENT}; pad them or take a "
                    "config without descriptors"
                )
        return ""


Argument = str | int | float | Descriptor


@dataclass(frozen=True)
class Launch:
    """One launch. A kernel of the schedule may need none, one or several launches."""

    kernel: str
    """The schedule's kernel that it carries out."""
    function: Any
    """Triton's function."""
    grid: tuple[int, ...]
    """Blocks along each axis of the grid."""
    arguments: Mapping[str, Argument]
    """An array name, a descriptor or a scalar for each parameter."""
    constexprs: Mapping[str, Any]
    """Compile-time parameters."""
    num_warps: int = 4
    """Warps of a block."""
    num_stages: int = 2
    """Stages of the pipeline."""
    signature: Mapping[str, str] = field(default_factory=dict)
    """Triton's type of every parameter, so that it can be compiled without tensors."""

    @property
    def blocks(self) -> int:
        """Thread blocks launched."""
        return math.prod(self.grid)


@dataclass(frozen=True)
class Inputs:
    """A problem and random tensors for it."""

    problem: Any
    """The problem."""
    tensors: Tensors
    """The tensors by name."""


@dataclass(frozen=True)
class BundledKernel:
    """A Triton kernel with its reference, its algorithm and schedule, and its menu of configs."""

    name: str
    """What it is called."""
    summary: str
    """One sentence about it."""
    dtypes: tuple[str, ...]
    """Types that its problems may have."""
    configs: tuple[Any, ...]
    """Every config, best guess first."""
    cases: tuple[tuple[Any, Any], ...]
    """Small problems with a config, ragged ones among them, that the replay and the tests run."""
    arrays: Callable[[Any, Any], tuple[Array, ...]]
    """The storage of a problem and config."""
    plan: Callable[[Any, Any], tuple[Launch, ...]]
    """Its launches. Raises `ProblemError` for a problem or config that the kernel cannot do."""
    schedule: Callable[[Any, Any], Schedule]
    """The schedule that the model counts, of a problem and config."""
    reference_of: Callable[[Any, Tensors], Tensors]
    """The outputs in float64, from the inputs."""
    derive: Callable[[Any, Tensors], None] | None = None
    """Fills inputs that other inputs determine."""
    menu_of: Callable[[Any, str, int], tuple[Any, ...]] | None = None
    """Configs worth trying for a problem, a compile target ("sm_90") and its number of compute
    units; None: all."""
    forms: tuple[Any, ...] = ()
    """Full-size problems, one for each form that compiles to different code (head size, mask,
    type). Menus are compiled for them."""
    targets: tuple[str, ...] = ()
    """Compile targets that the kernel supports; empty: all."""
    style_like: str = "triton"
    """The implementation whose warps work together as its own do: what they overlap."""
    overlaps: Callable[[Any], bool] = lambda _: False
    """Whether one block of a config overlaps its own stages: by specialised warps, or by one loop
    over all its tiles."""
    interpreted: bool = True
    """Whether Triton's interpreter can run it; it cannot run Gluon. Other kernels are replayed and
    checked on a device only."""

    def takes(self, target: str) -> bool:
        """Whether the kernel supports a compile target."""
        return not self.targets or target in self.targets

    def menu(self, problem: Any, target: str, units: int) -> tuple[Any, ...]:
        """Configs worth trying on a target with `units` compute units, best guess first.

        Configs that do not support the problem (a tensor descriptor over unaligned rows) are left
        out. Raises `ProblemError` with the first config's reason if none is left.
        """
        if not self.takes(target):
            names = ", ".join(self.targets)
            raise ProblemError(f"{self.name} is written for {names}, not for {target}")
        configs = self.configs if self.menu_of is None else self.menu_of(problem, target, units)
        choices: list[Any] = []
        reason = f"{self.name} has no config for {target}"
        for config in configs:
            try:
                self.launches(problem, config)
            except ProblemError as error:
                reason = reason if choices else str(error)
                continue
            choices.append(config)
        if not choices:
            raise ProblemError(reason)
        return tuple(choices)

    def has_menu(self, problem: Any, target: str, units: int) -> bool:
        """Whether any config is worth trying for a problem on a target with `units` units."""
        try:
            return bool(self.menu(problem, target, units))
        except ProblemError:
            return False

    def launches(self, problem: Any, config: Any) -> tuple[Launch, ...]:
        """Launches in order, with the type of every parameter.

        Raises `ProblemError` for a type or config that the kernel does not support, and for a
        tensor descriptor over unaligned rows.
        """
        dtype = getattr(problem, "dtype", None)
        if dtype is not None and dtype not in self.dtypes:
            raise ProblemError(f"{self.name} takes {', '.join(self.dtypes)}, not {dtype}")
        arrays = {array.name: array for array in self.arrays(problem, config)}
        launches = self.plan(problem, config)
        for launch in launches:
            for value in launch.arguments.values():
                if isinstance(value, Descriptor):
                    fault = value.misalignment(arrays[value.array].item_bytes)
                    if fault:
                        raise ProblemError(f"{self.name} with {config}: {fault}")
        types = {name: _STORAGE[array.dtype][1] for name, array in arrays.items()}
        return tuple(replace(each, signature=_signature(each, types)) for each in launches)

    def make_inputs(self, problem: Any, seed: int = 0, device: str = "cpu") -> Inputs:
        """Fresh random inputs: standard normal, or uniform over the type's range for integers."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        tensors = {
            array.name: _draw(array, generator).to(device)
            for array in self.arrays(problem, self.configs[0])
            if array.role == "input"
        }
        if self.derive is not None:
            self.derive(problem, tensors)
        return Inputs(problem, tensors)

    def allocate(self, problem: Any, config: Any, device: str = "cpu") -> Tensors:
        """Outputs and scratch, filled with NaN so that an unwritten element cannot pass as a
        result."""
        return {
            array.name: array.laid_out(_poison(array, device))
            for array in self.arrays(problem, config)
            if array.role != "input"
        }

    def execute(self, problem: Any, config: Any, tensors: Tensors) -> None:
        """Run every launch on existing tensors; nothing is allocated."""
        for launch in self.launches(problem, config):
            self.launch(launch, tensors)

    def launch(self, launch: Launch, tensors: Tensors) -> Any:
        """Run one launch on existing tensors; returns Triton's compiled kernel."""
        return self.bind(launch, tensors)()

    def bind(self, launch: Launch, tensors: Tensors) -> Callable[[], Any]:
        """A launch with its arguments bound, so that repeated calls reuse its descriptors. Raises
        `KernelError` for tensors without a device where nothing interprets the kernel."""
        devices = {str(tensor.device) for tensor in tensors.values() if tensor.is_cuda}
        if not self.interpreted and not devices:
            raise KernelError(f"{self.name} runs on a device only: Gluon has no interpreter")
        for device in devices:
            _allow_descriptors(device)
        bound = {name: _bound(value, tensors) for name, value in launch.arguments.items()}
        return partial(
            launch.function[launch.grid],
            **bound,
            **launch.constexprs,
            num_warps=launch.num_warps,
            num_stages=launch.num_stages,
        )

    def run(self, inputs: Inputs, config: Any) -> Tensors:
        """Poisoned outputs, then every launch; returns the outputs by name."""
        device = str(next(iter(inputs.tensors.values())).device)
        tensors = self.allocate(inputs.problem, config, device)
        self.execute(inputs.problem, config, {**inputs.tensors, **tensors})
        outputs = [a for a in self.arrays(inputs.problem, config) if a.role == "output"]
        return {array.name: tensors[array.name] for array in outputs}

    def reference(self, inputs: Inputs) -> Tensors:
        """The outputs in float64."""
        return self.reference_of(inputs.problem, inputs.tensors)

    def errors(self, inputs: Inputs, outputs: Tensors) -> dict[str, float]:
        """‖out − ref‖ / ‖ref‖ of every output; NaN where anything was left unwritten."""
        expected = self.reference(inputs)
        return {name: relative_error(outputs[name], expected[name]) for name in expected}


def relative_error(out: Any, ref: Any) -> float:
    """‖out − ref‖ / ‖ref‖ over two torch tensors; infinities must stand in the same places."""
    import torch

    out, ref = out.double().cpu().reshape(-1), ref.double().cpu().reshape(-1)
    infinite = torch.isinf(ref)
    if not torch.equal(out[infinite], ref[infinite]):
        return math.inf
    out, ref = out[~infinite], ref[~infinite]
    scale = float(torch.linalg.vector_norm(ref))
    difference = float(torch.linalg.vector_norm(out - ref))
    return difference / scale if scale else difference


def _bound(value: Argument, tensors: Tensors) -> Any:
    """What is passed for an argument."""
    if isinstance(value, str):
        return tensors[value]
    return value.on(tensors[value.array]) if isinstance(value, Descriptor) else value


def _allow_descriptors(device: str) -> None:
    """Set Triton's allocator, for kernels that make tensor descriptors on the device."""
    import torch
    import triton

    if hasattr(triton, "set_allocator"):
        triton.set_allocator(
            lambda size, _align, _stream: torch.empty(size, dtype=torch.int8, device=device)
        )


def _signature(launch: Launch, types: Mapping[str, str]) -> dict[str, str]:
    """Triton types in the order of the function's parameters."""
    kinds = {name: _parameter_type(value, types) for name, value in launch.arguments.items()}
    kinds |= dict.fromkeys(launch.constexprs, "constexpr")
    return {name: kinds[name] for name in launch.function.arg_names}


def _parameter_type(value: Argument, types: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return f"*{types[value]}"
    if isinstance(value, Descriptor):
        return value.signature(types[value.array])
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


def torch_type(dtype: str) -> Any:
    """The torch dtype of a storage type; raises `KernelError` for one that cannot be stored."""
    import torch

    if dtype not in _STORAGE:
        raise KernelError(f"no kernel stores {dtype}; kernels store {', '.join(_STORAGE)}")
    return getattr(torch, _STORAGE[dtype][0])


def _draw(array: Array, generator: Any) -> Any:
    return array.laid_out(_random_tensor(array, generator))


def _random_tensor(array: Array, generator: Any) -> Any:
    import torch

    kind = torch_type(array.dtype)
    if array.fill == "zero":
        return torch.zeros(array.shape, dtype=kind)
    if array.fill == "derived":
        return _poison(array, "cpu")
    if array.dtype in ("int8", "uint8", "int32"):
        low, high = {"int8": (-127, 128), "uint8": (0, 256)}.get(array.dtype, (-1000, 1000))
        return torch.randint(low, high, array.shape, dtype=kind, generator=generator)
    return torch.randn(array.shape, dtype=torch.float32, generator=generator).to(kind)


def _poison(array: Array, device: str) -> Any:
    import torch

    kind = torch_type(array.dtype)
    if array.fill == "zero":
        return torch.zeros(array.shape, dtype=kind, device=device)
    if array.dtype in ("int8", "uint8", "int32"):
        return torch.full(array.shape, 85, dtype=kind, device=device)
    return torch.full(array.shape, math.nan, dtype=torch.float32, device=device).to(kind)
