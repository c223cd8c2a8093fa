"""The bundled and plugged-in Triton kernels as contenders: implementations that can be timed.

Inputs are drawn on the device, so that a case of several GB needs no host memory. Inputs that
follow from others (row statistics, L and O for a backward pass) are computed there as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.cases import Case
from perfmodel.measured import references
from perfmodel.measured.measure import describe_failure
from perfmodel.measured.references import Tensors
from perfmodel.measured.rivals import Prepared
from perfmodel.measured.timer import Call
from perfmodel.measured.tuning import Trial, Tuner, is_out_of_memory
from perfmodel.proof.kernel import Array, BundledKernel, KernelError, torch_type

_MOST_UNFUSED = 4 * 2**30  # bytes of scores that the unfused kernels may store, per matrix
_ONE_PASS_COLUMNS = 32768  # columns: a longer row does not stay on chip
_SPILL_BYTES = 4  # of a spill in Triton's count


def _attention(case: Case) -> tuple[str, ...]:
    small = case.scores_bytes <= _MOST_UNFUSED and case.dtype != "fp8"
    if case.direction == "bwd":
        return ("attention-backward", *(("attention-standard-backward",) if small else ()))
    if case.phase == "decode":
        return ("attention-decode",)
    standard = ("attention-standard",) if small else ()
    flash1 = ("attention-flash1",) if case.size("seq_kv") <= 4096 and case.dtype != "fp8" else ()
    gluon: tuple[str, ...] = ()
    if case.dtype in ("fp16", "bf16"):
        widest = {"attention-gluon": 256, "attention-gluon-blackwell": 128}
        gluon = tuple(name for name, limit in widest.items() if case.size("head_dim") <= limit)
    return ("attention-tiled", *standard, *flash1, *gluon)


def _gemm(case: Case) -> tuple[str, ...]:
    if case.dtype in ("w8a16", "w4a16"):
        return (f"matmul-{case.dtype}",)
    deep = case.size("m") * case.size("n") <= 2**22 and case.size("k") >= 1024
    return ("matmul", "matmul-persistent", *(("matmul-split-k",) if deep else ()))


def _rows(case: Case) -> tuple[str, ...]:
    if case.op == "softmax":
        names = ("softmax",) if case.size("cols") <= _ONE_PASS_COLUMNS else ()
        return (*names, *(("softmax-online",) if case.size("cols") > 4096 else ()))
    return (f"{case.op}-backward" if case.direction == "bwd" else case.op,)


_KERNELS: Mapping[str, Callable[[Case], tuple[str, ...]]] = {
    "attention": _attention,
    "gemm": _gemm,
    "softmax": _rows,
    "layernorm": _rows,
    "rmsnorm": _rows,
    "pointwise": lambda case: (case.variant,),
}
_BUNDLED = frozenset(
    (
        "copy", "scale", "add", "triad", "chain-fused", "chain-unfused", "softmax",
        "softmax-online", "layernorm", "layernorm-backward", "rmsnorm", "rmsnorm-backward",
        "matmul", "matmul-split-k", "matmul-persistent", "matmul-w8a16", "matmul-w4a16",
        "attention-standard", "attention-standard-backward", "attention-tiled",
        "attention-backward", "attention-flash1", "attention-decode", "attention-gluon",
        "attention-gluon-blackwell",
    )
)  # fmt: skip


Menu = Callable[[Case, BundledKernel, Any], Sequence[Any]]


@dataclass(frozen=True)
class Launcher:
    """Device, compile target and compute units for launching Triton kernels."""

    device: str
    """torch's name of the device."""
    target: str = ""
    """Its compile target."""
    units: int = 1
    """Its compute units."""

    def menu(self, case: Case, kernel: BundledKernel, problem: Any) -> Sequence[Any]:
        """The kernel's configs for the problem on this target; raises `ProblemError` if there is
        none."""
        return kernel.menu(problem, self.target, self.units)


class KernelContender:
    """A registered kernel on a device.

    `menu` gives the configs to try, best guess first (the kernel's own where None). `tuner` chooses
    among them; without one the first that the device can launch is taken.
    """

    def __init__(
        self,
        kernel: BundledKernel,
        version: str,
        launcher: Launcher,
        tuner: Tuner | None = None,
        menu: Menu | None = None,
    ) -> None:
        self.kernel = kernel
        self._device = launcher.device
        self._tuner = tuner
        self._menu = menu or launcher.menu
        self.implementation = f"triton-{version}:{kernel.name}"

    def takes(self, case: Case) -> bool:
        """Whether the kernel computes this case; a plugged-in kernel does if its own cases are like
        it."""
        kernel = self.kernel
        types = {"w8a16": "fp16", "w4a16": "fp16"}
        if types.get(case.dtype, case.dtype) not in kernel.dtypes:
            return False
        if kernel.name in _BUNDLED:
            return kernel.name in _KERNELS[case.op](case)
        if case.dtype in types:
            return False
        example = case.problem()
        return any(
            type(problem) is type(example)
            and all(
                getattr(problem, name, None) == getattr(example, name, None)
                for name in ("op", "variant", "direction")
            )
            for problem, _ in kernel.cases
        )

    def problem(self, case: Case) -> Any:
        """The case as this kernel's problem."""
        if case.dtype not in ("w8a16", "w4a16"):
            return case.problem()
        weight_only = type(self.kernel.cases[0][0])
        bits = 4 if case.dtype == "w4a16" else 8
        return weight_only(case.size("m"), case.size("n"), case.size("k"), bits, "fp16")

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        """Inputs and poisoned outputs for each set, with the chosen config's calls."""
        problem = self.problem(case)
        inputs = [self._inputs(case, problem, seed + i) for i in range(sets)]
        bound = self._bound(case, problem, inputs)

        def error() -> float:
            bound.calls[0]()
            outputs = {
                array.name: bound.made[array.name]
                for array in self.kernel.arrays(problem, bound.config)
                if array.role == "output"
            }
            return self._error(case, problem, inputs[0], outputs, seed)

        return Prepared(bound.calls, error, str(bound.config), resources=bound.resources)

    def _bound(self, case: Case, problem: Any, inputs: Sequence[Tensors]) -> Bound:
        """The calls of the config that the tuner chooses, or of the first that can be launched.
        Raises `KernelError` with the last reason where none can."""
        configs = self._menu(case, self.kernel, problem)
        if self._tuner is not None:
            trials = [self._trial(problem, config, inputs) for config in configs]
            trial = self._tuner.fastest(case, self.implementation, trials)
            return self.bind(problem, trial.config, inputs)
        reason = "it has no configs"
        for config in configs:
            try:
                bound = self.bind(problem, config, inputs)
                bound.calls[0]()
            except Exception as error:  # too much shared memory, a feature the device lacks, ...
                if is_out_of_memory(error):
                    raise
                reason = describe_failure(error)[:200]
                continue
            return bound
        raise KernelError(f"no config of {self.kernel.name} can be launched: {reason}")

    def _trial(self, problem: Any, config: Any, inputs: Sequence[Tensors]) -> Trial:
        """A config for the tuner: bound when it is timed, and freed afterwards."""
        resources: dict[str, int] = {}

        def prepare() -> Sequence[Call]:
            bound = self.bind(problem, config, inputs)
            bound.calls[0]()
            resources.update(bound.resources())
            return bound.calls

        return Trial(config, prepare, lambda: resources)

    def bind(self, problem: Any, config: Any, given: Sequence[Tensors]) -> Bound:
        """One call for each set of inputs, each with its own outputs.

        Outputs that the kernel adds to are zeroed in each call, within the measured time.
        """
        kernel = self.kernel
        launches = kernel.launches(problem, config)
        sums = [
            array.name
            for array in kernel.arrays(problem, config)
            if array.role != "input" and array.fill == "zero"
        ]
        binaries: list[Any] = []
        buffers = [kernel.allocate(problem, config, self._device) for _ in given]
        calls = []
        for inputs, outputs in zip(given, buffers, strict=True):
            tensors = {**inputs, **outputs}
            bound = [kernel.bind(launch, tensors) for launch in launches]
            calls.append(_call(bound, [tensors[name] for name in sums], binaries))
        return Bound(config, tuple(calls), buffers[0], binaries)

    def _inputs(self, case: Case, problem: Any, seed: int) -> Tensors:
        import torch

        generator = torch.Generator(self._device).manual_seed(seed)
        arrays = [
            array
            for array in self.kernel.arrays(problem, self.kernel.configs[0])
            if array.role == "input"
        ]
        tensors = {array.name: array.laid_out(_draw(array, generator)) for array in arrays}
        derived = [array for array in arrays if array.fill == "derived"]
        is_derived = bool(derived) and _derive(case, tensors)
        if self.kernel.derive is not None and not is_derived:
            self.kernel.derive(problem, tensors)
        return tensors

    def _error(
        self, case: Case, problem: Any, inputs: Tensors, outputs: Tensors, seed: int
    ) -> float:
        if self.kernel.name in _BUNDLED and case.dtype not in ("w8a16", "w4a16"):
            return references.error(case, inputs, outputs, seed)
        from perfmodel.proof.kernel import Inputs

        return max(self.kernel.errors(Inputs(problem, inputs), outputs).values())


@dataclass(frozen=True)
class Bound:
    """A config whose calls are ready to run."""

    config: Any
    """The config."""
    calls: tuple[Call, ...]
    """A call for each set of inputs."""
    made: Tensors
    """Outputs of the first call."""
    binaries: list[Any]
    """What Triton returned for its launches."""

    def resources(self) -> dict[str, int]:
        """Registers and spilled bytes of a thread and shared memory of a block; the largest over
        launches.

        Empty before the first call, and in the interpreter.
        """
        kernels = [item for item in self.binaries if hasattr(item, "n_regs")]
        if not kernels:
            return {}
        return {
            "registers": max(int(item.n_regs) for item in kernels),
            "spill_bytes": max(_SPILL_BYTES * int(item.n_spills) for item in kernels),
            "shared_bytes": max(int(item.metadata.shared) for item in kernels),
        }


def _call(bound: Sequence[Call], sums: Sequence[Any], binaries: list[Any]) -> Call:
    """A call of all launches; the binaries that Triton returns at first are kept."""

    def call() -> None:
        for tensor in sums:
            tensor.zero_()
        results = [launch() for launch in bound]
        if not binaries:
            binaries.extend(results)

    return call


def contenders(
    launcher: Launcher, tuner: Tuner | None = None, menu: Menu | None = None
) -> tuple[list[KernelContender], tuple[str, ...]]:
    """Every registered kernel that can be launched, and a line for each that could not be
    loaded."""
    import triton

    from perfmodel.proof import registry

    entries = [
        KernelContender(kernel, triton.__version__, launcher, tuner, menu)
        for kernel in registry.kernels().values()
        if kernel.takes(launcher.target) and (kernel.interpreted or launcher.device != "cpu")
    ]
    return entries, registry.failures()


def _draw(array: Array, generator: Any) -> Any:
    """One input on the device; derived ones are NaN until they are computed."""
    import torch

    kind, device = torch_type(array.dtype), generator.device
    if array.fill == "zero":
        return torch.zeros(array.shape, dtype=kind, device=device)
    if array.fill == "derived":
        return torch.full(array.shape, math.nan, dtype=torch.float32, device=device).to(kind)
    if array.dtype in ("uint8", "int32"):
        low, high = (0, 256) if array.dtype == "uint8" else (-1000, 1000)
        return torch.randint(low, high, array.shape, dtype=kind, generator=generator, device=device)
    return references.random(array.shape, array.dtype, generator)


def _derive(case: Case, tensors: Tensors) -> bool:
    """Compute a backward pass's inputs from the forward pass, on the device; False if unknown."""
    if case.op == "attention" and {"O", "L"} <= tensors.keys() and "P" not in tensors:
        _attention_results(case, tensors)
        return True
    if case.op in ("layernorm", "rmsnorm") and "rstd" in tensors:
        for start in range(0, case.size("rows"), 4096):
            rows = slice(start, start + 4096)
            mean, rstd = references.statistics(case, tensors["X"][rows].double())
            tensors["rstd"][rows] = rstd.to(tensors["rstd"].dtype)
            if "mean" in tensors:
                tensors["mean"][rows] = mean.to(tensors["mean"].dtype)
        return True
    return False


def _attention_results(case: Case, tensors: Tensors) -> None:
    group = case.size("heads_q") // case.size("heads_kv")
    for batch in range(case.size("batch")):
        for head in range(case.size("heads_kv")):
            heads = slice(head * group, (head + 1) * group)
            q = tensors["Q"][batch, heads].float()
            k, v = (tensors[name][batch, head].float() for name in "KV")
            out, norm = references.attend(case, q, k, v)
            tensors["O"][batch, heads] = out.to(tensors["O"].dtype)
            tensors["L"][batch, heads] = norm.to(tensors["L"].dtype)
