"""A functional model of Gluon on Hopper and Blackwell: runs a kernel's own source in numpy.

Groups of warps run one at a time, in random order. Copies and asynchronous products are executed at
a random moment between their issue and the wait for them. A buffer freed too early, a wrong barrier
phase or a missing wait thus gives a wrong result or a deadlock for some seed.

Shared and tensor memory start as NaN. A warp's tcgen05 products and commits are executed in order
of issue. Concurrency within a group of warps is not modelled.
"""

from __future__ import annotations

import random
import threading
from types import FunctionType, SimpleNamespace

import numpy as np


class Deadlock(Exception):
    """No thread can continue."""


class Scheduler:
    """Runs threads one at a time; between their steps any pending copy or product may be executed.

    Some threads, copies and products are up to a thousand times as likely to be chosen as others.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.turn = threading.Condition()
        self.conditions = {}  # of every live thread: what it waits for
        self.pending = []  # (queue of functions in order, its weight)
        self.weights = {}
        self.current = None
        self.failed = None

    def run(self, tasks):
        names = range(len(tasks))
        self.conditions = dict.fromkeys(names, lambda: True)
        self.weights = {name: self._weight() for name in names}
        threads = [
            threading.Thread(target=self._body, args=(n, t), daemon=True)
            for n, t in zip(names, tasks, strict=True)
        ]
        for thread in threads:
            thread.start()
        with self.turn:
            self._pass_on()
        for thread in threads:
            thread.join()
        if self.failed is not None:
            raise self.failed
        for queue, _ in self.pending:
            assert not queue, "a copy or product that nobody waited for"

    def _weight(self):
        return 10 ** self.random.uniform(-3, 0)

    def _body(self, name, task):
        with self.turn:
            self.turn.wait_for(lambda: self.current == name)
        with np.errstate(invalid="ignore", over="ignore"):  # of what nobody wrote: a wrong result
            try:
                if self.failed is None:
                    task()
            except BaseException as error:
                self.failed = self.failed or error
            with self.turn:
                del self.conditions[name]
                self._pass_on()

    def until(self, condition=lambda: True):
        """Run other threads and pending work until `condition` holds."""
        name = self.current
        with self.turn:
            self.conditions[name] = condition
            self._pass_on()
            self.turn.wait_for(lambda: self.current == name)
        if self.failed is not None:
            raise self.failed

    def _pass_on(self):
        while self.conditions or any(queue for queue, _ in self.pending):
            ready = [name for name, holds in self.conditions.items() if self.failed or holds()]
            waiting = [(queue, weight) for queue, weight in self.pending if queue]
            if not ready and not waiting:
                self.failed = Deadlock("every group of warps waits")
                continue
            weights = [self.weights[name] for name in ready] + [weight for _, weight in waiting]
            (chosen,) = self.random.choices(range(len(weights)), weights)
            if chosen < len(ready):
                self.current = ready[chosen]
                break
            try:
                waiting[chosen - len(ready)][0].pop(0)()
            except AssertionError as error:
                self.failed = self.failed or error
        self.turn.notify_all()

    def queue(self):
        self.pending.append(([], self._weight()))
        return self.pending[-1][0]


LAYOUT = SimpleNamespace(parent=None)  # stands for every distributed layout
TENSOR_MEMORY = (128, 512)  # lanes and columns of 32 bits


class Tensor(np.ndarray):
    """Values with the attributes of a tensor that kernels use."""

    @property
    def type(self):
        return SimpleNamespace(shape=list(self.shape), layout=LAYOUT)

    def to(self, dtype):
        return self.astype(dtype).view(Tensor)


def tensor(values, dtype=np.float32):
    return np.asarray(values, dtype).view(Tensor)


class Int(int):
    """A scalar of the kernel, which can be converted."""

    def to(self, _):
        return self


for _name in ("add", "sub", "mul", "floordiv", "mod", "radd", "rsub", "rmul", "and", "xor"):
    _plain = getattr(int, f"__{_name}__")
    setattr(Int, f"__{_name}__", lambda a, b, _plain=_plain: _wrap(_plain(a, b)))


def _wrap(value):
    return value if value is NotImplemented else Int(value)


class Memory:
    """A piece of shared or tensor memory; `step` lets other threads run before an access."""

    def __init__(self, values, step=lambda: None):
        self.values, self.step = values, step

    @property
    def type(self):
        return SimpleNamespace(shape=list(self.values.shape), layout=LAYOUT)

    @property
    def dtype(self):
        return self.values.dtype

    def index(self, at):
        return type(self)(self.values[int(at)], self.step)

    def store(self, values):
        assert values.shape == self.values.shape
        assert values.dtype == self.values.dtype
        self.step()
        self.values[...] = values

    def load(self, layout):
        self.step()
        return tensor(self.values.copy(), self.values.dtype)

    def slice(self, start, length, dim=-1):
        assert start + length <= self.values.shape[dim]
        cut = [slice(None)] * self.values.ndim
        cut[dim] = slice(start, start + length)
        return type(self)(self.values[tuple(cut)], self.step)


class Shared(Memory):
    """A piece of shared memory."""

    def permute(self, order):
        return Shared(self.values.transpose(order), self.step)


class TensorMemory(Memory):
    """A piece of tensor memory, whose bits may be read as another type."""

    def _reinterpret(self, dtype, shape, layout):
        values = self.values.view(dtype)
        assert list(values.shape) == [int(size) for size in shape]
        return TensorMemory(values, self.step)


class Barrier:
    def __init__(self):
        self.count = self.missing = self.bytes = self.phase = 0

    def note(self, arrivals=0, size=0):
        self.missing -= arrivals
        self.bytes += size
        assert self.missing >= 0, "more arrivals than a phase takes"
        if self.missing == 0 and self.bytes == 0:
            self.phase ^= 1
            self.missing = self.count


class Barriers:
    def __init__(self, count):
        self.each = [Barrier() for _ in range(count)]

    @property
    def type(self):
        return SimpleNamespace(shape=[len(self.each), 1], layout=None)

    def index(self, at):
        return self.each[int(at)]


class Described:
    """A tensor descriptor: an array, its tile, and the bytes that were moved."""

    def __init__(self, array, block):
        self.array, self.block, self.moved = array, block, 0
        size = int(np.prod(block)) * array.itemsize
        self.block_type = SimpleNamespace(shape=list(block), nbytes=size)
        self.dtype = array.dtype
        self.layout = SimpleNamespace(swizzle_byte_width=128)

    def window(self, at):
        """(where in the array, where in the tile) for what lies within both."""
        inside = [
            (slice(a, min(a + b, n)), slice(0, max(min(a + b, n) - a, 0)))
            for a, b, n in zip(map(int, at), self.block, self.array.shape, strict=True)
        ]
        return tuple(source for source, _ in inside), tuple(tile for _, tile in inside)

    def load(self, at):
        source, tile = self.window(at)
        found = np.zeros(self.block, self.dtype)
        found[tile] = self.array[source]
        self.moved += self.array[source].nbytes
        return found[0]

    def save(self, at, values):
        source, tile = self.window(at)
        self.array[source] = values[None][tile]
        self.moved += self.array[source].nbytes


class Product:
    """The result of an asynchronous product; not available before it is done."""

    def __init__(self):
        self.values = None


class Machine:
    """One thread block: implements the functions of `gl`, `mbarrier`, `tma` and the products."""

    def __init__(self, block, seed):
        self.scheduler = Scheduler(seed)
        self.products = {}
        self.columns = 0
        self.stores = {}
        self.gl = SimpleNamespace(
            constexpr=None, int64=np.int64, float32=np.float32,
            program_id=lambda axis: Int(block), cdiv=lambda a, b: Int(-(-int(a) // int(b))),
            static_range=range, allocate_shared_memory=self.allocate,
            NVMMASharedLayout=lambda *_: None, SwizzledSharedLayout=lambda *_: None,
            NVMMADistributedLayout=lambda *_: None, DotOperandLayout=lambda *_: None,
            SliceLayout=lambda *_: LAYOUT, BlockedLayout=lambda *_: LAYOUT,
            convert_layout=lambda values, layout: values, min=lambda values, axis: values.min(axis),
            arange=lambda a, b, layout=None: tensor(np.arange(a, b), np.int32),
            full=lambda shape, value, dtype, layout: tensor(np.full(shape, value), dtype),
            zeros=lambda shape, dtype, layout: tensor(np.zeros(shape), dtype),
            reshape=lambda values, shape: values.reshape([int(n) for n in shape]),
            where=lambda a, b, c: tensor(np.where(a, b, c)),
            minimum=self.pointwise(np.minimum, min), maximum=self.pointwise(np.maximum, max),
            max=lambda values, axis: values.max(axis), sum=lambda values, axis: values.sum(axis),
            exp2=np.exp2, log2=np.log2, store=self.store, load=self.load,
            warp_specialize=self.specialise,
        )  # fmt: skip
        self.mbarrier = SimpleNamespace(
            MBarrierLayout=lambda: "barrier", init=self.init, wait=self.wait, arrive=self.arrive,
            expect=lambda barrier, size: barrier.note(1, size),
        )  # fmt: skip
        self.tma = SimpleNamespace(
            async_copy_global_to_shared=self.copy_in,
            async_copy_shared_to_global=self.copy_out,
            store_wait=self.store_wait,
        )

    def functions(self, module):
        """The module's functions as plain Python, executed on this machine."""
        names = dict(vars(module))
        for name, value in vars(module).items():  # those of other kernels' modules too
            if isinstance(getattr(value, "fn", None), FunctionType):
                names[name] = FunctionType(value.fn.__code__, names, name, value.fn.__defaults__)
        names |= {
            "gl": self.gl, "mbarrier": self.mbarrier, "tma": self.tma,
            "fence_async_shared": lambda: None, "warpgroup_mma": self.product,
            "warpgroup_mma_wait": self.product_wait, "TensorMemoryLayout": lambda *_, **__: LAYOUT,
            "get_tmem_reg_layout": lambda *_: LAYOUT, "tcgen05_mma": self.tensor_product,
            "allocate_tensor_memory": self.allocate_tensor, "tcgen05_commit": self.commit,
        }  # fmt: skip
        return SimpleNamespace(**names)

    @staticmethod
    def pointwise(arrays, scalars):
        def apply(a, b):
            if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
                return arrays(a, b)
            return Int(scalars(a, b))

        return apply

    def allocate(self, dtype, shape, layout):
        if layout == "barrier":
            return Barriers(shape[0])
        return Shared(np.full(shape, np.nan, dtype), self.scheduler.until)

    def allocate_tensor(self, dtype, shape, layout):
        lanes, columns = TENSOR_MEMORY
        found = np.full(shape, np.nan, dtype)
        assert shape[-2] == lanes
        self.columns += found.nbytes // lanes // 4
        assert self.columns <= columns, "tensor memory is full"
        return TensorMemory(found, self.scheduler.until)

    def store(self, target, values, mask):
        array, at = target
        array[at[mask]] = values[mask]

    def load(self, source, mask, other):
        array, at = source
        return tensor(np.where(mask, array[np.where(mask, at, 0)], other))

    def specialise(self, parts, warps, registers):
        assert len(parts) == len(warps) + 1 == len(registers) + 1
        assert 4 * max(registers[0], registers[-1]) <= 1024
        self.scheduler.run([lambda f=f, a=a: f(*a) for f, a in parts])

    def init(self, barrier, count):
        barrier.count = barrier.missing = int(count)

    def wait(self, barrier, phase):
        self.scheduler.until(lambda: barrier.phase != int(phase))

    def arrive(self, barrier, count):
        self.scheduler.until()
        barrier.note(count)

    def copy_in(self, described, at, barrier, target):
        def copy():
            target.values[...] = described.load(at)
            barrier.note(0, -described.block_type.nbytes)

        self.scheduler.queue().append(copy)
        self.scheduler.until()

    def copy_out(self, described, at, source):
        queue = self.stores.setdefault(self.scheduler.current, self.scheduler.queue())
        queue.append(lambda: described.save(at, source.values))
        self.scheduler.until()

    def store_wait(self, outstanding):
        queue = self.stores[self.scheduler.current]
        self.scheduler.until(lambda: len(queue) <= outstanding)

    def product(self, a, b, sums, use_acc=True, is_async=False):
        assert is_async
        done, start = Product(), np.array(sums if use_acc else 0 * sums)
        held = a if isinstance(a, Shared) else Shared(np.array(a))

        def multiply():
            values = held.values.astype(np.float32) @ b.values.astype(np.float32)
            done.values = tensor(start + values)

        self.start(multiply)
        return done

    def start(self, work):
        """Queue what happens after all that the same warps have started."""
        queue = self.products.get(self.scheduler.current)
        if queue is None:
            queue = self.products[self.scheduler.current] = self.scheduler.queue()
        queue.append(work)
        self.scheduler.until()

    def tensor_product(self, a, b, sums, use_acc=True):
        def multiply():
            values = a.values.astype(np.float32) @ b.values.astype(np.float32)
            sums.values[...] = sums.values + values if use_acc else values

        assert isinstance(sums, TensorMemory)
        assert isinstance(b, Shared)
        self.start(multiply)

    def commit(self, barrier):
        self.start(lambda: barrier.note(1))

    def product_wait(self, outstanding, deps):
        queue = self.products[self.scheduler.current]
        self.scheduler.until(lambda: len(queue) <= outstanding)
        found = [item.values if isinstance(item, Product) else item for item in deps]
        assert all(item is not None for item in found), "a product was used before its wait"
        return found[0] if len(found) == 1 else tuple(found)


class Pointer:
    """The address of an array's first element."""

    def __init__(self, array):
        self.array = array

    def __add__(self, at):
        return self.array, np.asarray(at)


def execute(module, function, blocks, arguments, constexprs, seed):
    """Run every thread block of a kernel of `module`."""
    for block in range(blocks):
        machine = Machine(block, seed + block)
        getattr(machine.functions(module), function)(**arguments, **constexprs)
