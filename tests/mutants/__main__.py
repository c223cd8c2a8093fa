"""Mutation testing: `make mutants`, or python tests/mutants --seed 7 --rooms serving offload.

Each of a seeded sample of mistakes, spread over the library's packages, is made in a copy of the
tree, and the tests that concern it are run, the nearest first, until one fails. A failure
counts where the same test passes without the mistake. The exit code is 1 if fewer than nine in ten
mutants are killed; survivors are listed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from concerned import concerned, running  # noqa: E402
from mutations import Mutation, mutations  # noqa: E402

ROOMS = (
    "algorithms", "analysis", "collectives", "compression", "context_parallel", "count",
    "embeddings", "graph", "hardware", "napkin", "networks", "offload", "onchip", "operators",
    "schedules", "serving", "timing", "tracing", "training", "triton",
)  # fmt: skip
"""Packages that predict; all others read, write or show."""
NOT_PREDICTING = {"bench.py", "schema.py", "reading.py", "checking.py"}
"""Modules of these packages that do not predict either."""
CHUNKS = (2, 4, 4)
"""Test modules of one process of pytest: a mistake that the nearest notice costs seconds."""
TESTS = (12, 48, 192)
"""The same, of single tests that run the mistake's line."""
SECONDS = 90
"""Time of a processor that the tests of a chunk may take, which other programs do not lengthen."""
LEAST = 0.9


@dataclass(frozen=True)
class Mutant:
    """A mistake in a file, by its path in the tree."""

    path: str
    mutation: Mutation

    def __str__(self) -> str:
        one = self.mutation
        before, after = (" ".join(text.split()) for text in (one.before, one.after))
        return f"{self.path}:{one.line}: {one.kind}: {before}  ->  {after}"

    @property
    def room(self) -> str:
        """The package that it is in."""
        return self.path.split("/")[1]


def _turns(lists: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    """One of each list, then the next of each."""
    return [one for one in chain.from_iterable(zip_longest(*lists)) if one is not None]


def sampled(seed: int, count: int, rooms: Sequence[str]) -> list[Mutant]:
    """`count` mutants, as evenly spread over rooms as possible, and in each room over kinds."""
    dice, lists = random.Random(seed), []
    for room in rooms:
        by_kind: dict[str, list[Mutant]] = defaultdict(list)
        for path in sorted((ROOT / "perfmodel" / room).rglob("*.py")):
            if path.name not in NOT_PREDICTING:
                for one in mutations(path.read_bytes()):
                    by_kind[one.kind].append(Mutant(path.relative_to(ROOT).as_posix(), one))
        kinds = [by_kind[kind] for kind in sorted(by_kind)]
        dice.shuffle(kinds)
        for some in kinds:
            dice.shuffle(some)
        lists.append(_turns(kinds))
    return _turns(lists)[:count]


def tree(folder: Path) -> Path:
    """A copy of the repository's files in a folder, with what lies beside the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(lambda each: (ROOT / each).is_file(), listed.splitlines()):
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "tree" / name)
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    return folder / "tree"


@dataclass(frozen=True)
class Outcome:
    """How tests went: the first that failed, if any, and whether their time was up."""

    failed: str = ""
    out_of_time: bool = False


def outcome(folder: Path, tests: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """Run tests in a tree until one fails, or `seconds` of a processor are over."""
    options = ["-x", "-q", "-r", "fE", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist",
               "--hypothesis-profile", "thorough"]  # fmt: skip
    limited = ["sh", "-c", f'ulimit -t {int(seconds)}; exec "$@"', "sh"]
    done = subprocess.run(
        [*limited, sys.executable, "-m", "pytest", *options, *tests],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    named = re.search(r"^(?:FAILED|ERROR) (tests/\w+/\w+\.py(?:::\w+)*)", done.stdout, re.MULTILINE)
    if named:
        return Outcome(named[1])
    return Outcome(out_of_time=done.returncode not in (0, 5))


_trees: list[Path] = []  # of this worker: the one for mistakes, and the one without any
_plain: dict[tuple[str, ...], Outcome] = {}


def without(tests: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """How tests go without a mistake."""
    asked = tuple(tests)
    if asked not in _plain:
        _plain[asked] = outcome(_trees[1], tests, seconds)
    return _plain[asked]


def chunks(mutant: Mutant) -> Iterator[list[str]]:
    """The tests of each process of pytest, the nearest first."""
    module = ".".join(Path(mutant.path).with_suffix("").parts).removesuffix(".__init__")
    modules = concerned(module, mutant.mutation.before)
    tests = running(ROOT / mutant.path, mutant.mutation.line, modules)
    for size in TESTS:
        yield tests[:size]
        tests = tests[size:]
    # A result that a test has cached runs no line in the next: so whole modules as well.
    for size in CHUNKS:
        yield modules[:size]
        modules = modules[size:]


def noticed(folder: Path, mutant: Mutant) -> str:
    """The test that a mistake fails, or those that it keeps from ending; else nothing."""
    for tests in chunks(mutant):
        went = outcome(folder, tests) if tests else Outcome()
        if went.failed:
            if without([went.failed]).failed:
                raise RuntimeError(f"{went.failed} fails without a mistake too")
            return went.failed
        if went.out_of_time and without(tests, SECONDS / 2) == Outcome():
            return f"out of time in {', '.join(tests)}"
    return ""


def killed(mutant: Mutant) -> tuple[Mutant, str]:
    """The mutant and the test that notices it, if one does; each worker has trees of its own."""
    if not _trees:
        folders = [Path(tempfile.mkdtemp(prefix="perfmodel-mutants-")) for _ in range(2)]
        _trees.extend(map(tree, folders))
    path = _trees[0] / mutant.path
    before = path.read_bytes()
    path.write_bytes(mutant.mutation.applied(before))
    try:
        return mutant, noticed(_trees[0], mutant)
    finally:
        path.write_bytes(before)


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=ROOMS)
    return parser.parse_args()


def main() -> int:
    """Run the mutants, print what was killed in each room and what survived."""
    chosen = arguments()
    seed = secrets.randbelow(2**32) if chosen.seed is None else chosen.seed
    mutants, began = sampled(seed, chosen.mutants, chosen.rooms), time.monotonic()
    print(f"{len(mutants)} mutants of seed {seed}", file=sys.stderr)
    alive: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="perfmodel-mutants-") as folder:
        tempfile.tempdir = folder  # all trees go with it, workers that are stopped included
        with multiprocessing.get_context("fork").Pool(chosen.jobs) as pool:
            for done, (mutant, test) in enumerate(pool.imap_unordered(killed, mutants), 1):
                alive += [] if test else [mutant]
                print(f"{done}/{len(mutants)} {'killed  ' if test else 'SURVIVED'} {mutant}"
                      f"{f'  by {test}' if test else ''}", file=sys.stderr, flush=True)  # fmt: skip
    kills = len(mutants) - len(alive)
    print(f"seed {seed}: {kills} of {len(mutants)} mutants killed ({kills / len(mutants):.0%}) "
          f"in {time.monotonic() - began:,.0f} s")  # fmt: skip
    drawn, left = (Counter(each.room for each in some) for some in (mutants, alive))
    print(", ".join(f"{room} {drawn[room] - left[room]}/{drawn[room]}" for room in sorted(drawn)))
    for mutant in sorted(alive, key=str):
        print(f"survived: {mutant}")
    return int(kills < LEAST * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
