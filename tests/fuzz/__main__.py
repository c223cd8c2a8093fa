"""Fuzz whole commands: `make fuzz`, or python tests/fuzz --inputs 100000 --seed 7 --jobs 2.

Input number i of a seed is always the same. Inputs run in worker processes, in blocks; a worker
that dies or hangs is replaced. The exit code is 1 if anything is wrong.

    --only 123 --seed 7    run one input and show it
    --save FOLDER          keep the first input of each failure there, for tests/fuzz/found
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import commands  # noqa: E402
import files  # noqa: E402
import tracedmodules  # noqa: E402
from check import SECONDS, judged  # noqa: E402
from dice import Dice  # noqa: E402
from inputs import Input  # noqa: E402

KINDS: dict[str, tuple[Callable[[Dice], Input], float]] = {
    "commands": (commands.make, 55),
    "files": (files.make, 65),
    "traces": (tracedmodules.make, 3),
}
"""What is fuzzed: maker and weight."""

BLOCK = 100  # inputs that a worker is given at a time
WALL = 12 * SECONDS  # seconds after which a worker is taken for hanging outside of Python
MEMORY = 4 * 2**30  # bytes of address space that a worker may take on top of its start


def made(seed: int, index: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Input:
    """Input number `index` of a seed."""
    dice = Dice(f"{seed}:{index}")
    weights = [KINDS[kind][1] for kind in kinds]
    (kind,) = dice.choices(kinds, weights)
    return KINDS[kind][0](dice)


@dataclass
class Tally:
    """Counts of outcomes and failures."""

    inputs: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    problems: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str], int] = field(default_factory=dict)
    longest: tuple[float, int] = (0.0, -1)

    def add(self, index: int, kind: str, code: int | None, said: list[str], seconds: float) -> None:
        """One input."""
        self.inputs[kind] += 1
        self.codes[kind, code] += 1
        self.longest = max(self.longest, (seconds, index))
        for line in said:
            self.problems[kind, line] += 1
            if self.first.setdefault((kind, line), index) == index:
                print(f"\ninput {index}, {kind}: {line}", file=sys.stderr, flush=True)


def worker(pipe: Connection, seed: int, kinds: tuple[str, ...]) -> None:
    """Run blocks of inputs received through `pipe`, with a message before and after each input."""
    import perfmodel.cli  # noqa: F401

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, -1))
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "80", "MPLBACKEND": "agg"}
    os.environ.pop("PERFMODEL_HARDWARE_PATH", None)
    while (block := pipe.recv()) is not None:
        for index in block:
            pipe.send(("began", index))
            one = made(seed, index, kinds)
            folder = Path(tempfile.mkdtemp(prefix="perfmodel-fuzz-"))
            try:
                said, ended = judged(one, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            pipe.send(("ended", index, one.kind, ended.code, said, ended.seconds))
        pipe.send(("idle",))


@dataclass
class Hand:
    """A worker process and the block that it is running."""

    process: Any
    pipe: Connection
    block: list[int] = field(default_factory=list)
    busy: bool = False
    index: int = -1
    since: float = 0.0


def hire(seed: int, kinds: tuple[str, ...]) -> Hand:
    """A new worker."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=worker, args=(theirs, seed, kinds), daemon=True
    )
    process.start()
    theirs.close()
    return Hand(process, ours)


def fuzz(seed: int, count: int, jobs: int, kinds: tuple[str, ...], progress: bool) -> Tally:
    """Run `count` inputs on `jobs` processes."""
    tally, began = Tally(), time.monotonic()
    blocks: Iterator[list[int]] = iter(
        [list(range(i, min(i + BLOCK, count))) for i in range(0, count, BLOCK)]
    )
    if "files" in kinds and count > BLOCK:
        files.sound()  # made once for all workers, before any of their time is counted
    hands = [hire(seed, kinds) for _ in range(jobs)]
    for hand in hands:
        give(hand, next(blocks, []))
    told = 0.0
    try:
        while any(hand.busy for hand in hands):
            ready = wait([hand.pipe for hand in hands if hand.busy], timeout=1.0)
            for place, hand in enumerate(hands):
                if hand.pipe in ready and not hear(hand, tally, blocks):
                    hands[place] = replaced(hand, tally, "crash", seed, kinds)
                elif hand.busy and hand.index >= 0 and time.monotonic() - hand.since > WALL:
                    hand.process.kill()
                    hands[place] = replaced(hand, tally, "hang outside of Python", seed, kinds)
            if progress and time.monotonic() - told > 30:
                told = time.monotonic()
                done = tally.inputs.total()
                print(f"{done:,} of {count:,} inputs, {sum(tally.problems.values())} problems, "
                      f"{done / (told - began):.0f} a second", file=sys.stderr)  # fmt: skip
    except KeyboardInterrupt:  # what was seen until now is worth telling
        for hand in hands:
            hand.process.kill()
        return tally
    for hand in hands:
        hand.pipe.send(None)
        hand.process.join()
    return tally


def give(hand: Hand, block: list[int]) -> None:
    """Give the worker the next block, if there is one."""
    hand.block, hand.busy, hand.index = block, bool(block), -1
    if block:
        hand.pipe.send(list(block))


def hear(hand: Hand, tally: Tally, blocks: Iterator[list[int]]) -> bool:
    """Receive one message; False if the worker is gone."""
    try:
        message = hand.pipe.recv()
    except (EOFError, ConnectionError):
        return False
    if message[0] == "began":
        hand.index, hand.since = message[1], time.monotonic()
    elif message[0] == "ended":
        tally.add(*message[1:])
        hand.block.remove(message[1])
    else:
        give(hand, next(blocks, []))
    return True


def replaced(hand: Hand, tally: Tally, said: str, seed: int, kinds: tuple[str, ...]) -> Hand:
    """A new worker for the rest of the block; the failed input is reported."""
    hand.process.join()
    index = hand.index
    tally.add(index, made(seed, index, kinds).kind, None, [said], 0.0)
    new = hire(seed, kinds)
    new.block, new.busy = [each for each in hand.block if each != index], True
    new.pipe.send(list(new.block))  # none left: it answers that it is idle, and gets the next ones
    return new


def show(
    tally: Tally, seconds: float, seed: int, kinds: tuple[str, ...], folder: str | None
) -> None:
    """Print what was seen; keep the first input of each failure in `folder`."""
    total = tally.inputs.total()
    print(f"{total:,} inputs of seed {seed} in {seconds:,.0f} s; "
          f"longest {tally.longest[0]:.1f} s of processor time (input {tally.longest[1]})"
          )  # fmt: skip
    for kind, count in sorted(tally.inputs.items()):
        codes = {code: n for (of, code), n in tally.codes.items() if of == kind}
        ended = ", ".join(f"{code}: {n:,}" for code, n in sorted(codes.items(), key=str))
        print(f"  {kind:<12}{count:>9,} inputs; exit codes {ended}")
    print(f"{sum(tally.problems.values()):,} problems")
    for (kind, line), count in tally.problems.most_common():
        index = tally.first[kind, line]
        print(f"{count:7,}  {kind}: {line}  (first: --only {index})")
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            Path(folder, f"{kind}-{seed}-{index}.json").write_text(made(seed, index, kinds).dumps())


def one(seed: int, index: int, kinds: tuple[str, ...]) -> int:
    """Run one input and show everything about it."""
    chosen = made(seed, index, kinds)
    with tempfile.TemporaryDirectory() as folder:
        said, ended = judged(chosen, Path(folder), seconds=300)
    print(chosen.dumps())
    print(ended.out.decode(chosen.encoding, "replace")[:4000])
    print(ended.err[:4000])
    print(f"exit code {ended.code}, {ended.seconds:.2f} s of processor time")
    print("\n".join(said) or "all well")
    if ended.error is not None:
        import traceback

        traceback.print_exception(ended.error)
    return bool(said)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None, help="drawn and told where not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--save", default=None)
    asked = parser.parse_args()
    kinds = tuple(asked.kinds.split(","))
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    if asked.only is not None:
        return one(seed, asked.only, kinds)
    began = time.monotonic()
    tally = fuzz(seed, asked.inputs, asked.jobs, kinds, progress=True)
    show(tally, time.monotonic() - began, seed, kinds, asked.save)
    return bool(tally.problems)


if __name__ == "__main__":
    sys.exit(main())
