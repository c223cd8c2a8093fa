"""Mutation testing of the model: `make mutants`, or python tests/mutants --seed 7.

Each of a seeded sample of mistakes in perfmodel/timing and perfmodel/count is made in a copy of the
tree, and a fast part of the tests is run until one fails. The exit code is 1 if fewer than nine in
ten mutants are killed; survivors are listed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from mutations import Mutation, mutations  # noqa: E402

FOLDERS = ("perfmodel/timing", "perfmodel/count")
COPIED = (
    "perfmodel", "hardware_specs", "kernels", "tests", "docs", "pyproject.toml",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
)  # fmt: skip
TESTS = (
    "timing_memory", "mechanisms", "screening", "slicing", "machine", "occupancy", "plans",
    "unfused", "timing_terms", "slices", "library_rules", "waves", "matmul_counts",
    "rowwise_counts", "attention_examples", "right_answers", "predict", "classes",
    "timing_pipeline", "physics", "rule", "band",
)  # fmt: skip
"""Modules that are run for each mutant, the quick ones first."""
LATER = ("docs", "timing_laws", "attention_counts", "spread", "mapper")
"""Modules that are run for what those have missed: they take minutes."""
LEAST = 0.9
PATIENCE = 6.0
"""Times as long as without a mistake that the tests may take: then they have noticed as well."""


@dataclass(frozen=True)
class Mutant:
    """A mistake in a file, by its path in the tree."""

    path: str
    mutation: Mutation

    def __str__(self) -> str:
        one = self.mutation
        before, after = (" ".join(text.split()) for text in (one.before, one.after))
        return f"{self.path}:{one.line}: {one.kind}: {before}  ->  {after}"


def sampled(seed: int, count: int) -> list[Mutant]:
    """`count` mutants, as evenly spread over kinds as possible."""
    by_kind: dict[str, list[Mutant]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            for one in mutations(path.read_bytes()):
                by_kind[one.kind].append(Mutant(str(path.relative_to(ROOT)), one))
    dice = random.Random(seed)
    for some in by_kind.values():
        dice.shuffle(some)
    turns = max(len(some) for some in by_kind.values())
    every = [by_kind[kind][i] for i in range(turns) for kind in sorted(by_kind)
             if i < len(by_kind[kind])]  # fmt: skip
    return every[:count]


def tree() -> Path:
    """A copy of what the tests need."""
    folder = Path(tempfile.mkdtemp(prefix="perfmodel-mutants-"))
    ignore = shutil.ignore_patterns("__pycache__", "measured")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder)
    return folder


def failure(folder: Path, modules: Sequence[str], limit: float | None = None) -> str:
    """How some tests fail in a tree or take more than `limit` seconds of a processor, which others
    that share the machine do not lengthen; nothing if they pass.
    """
    tests = [f"tests/test_{name}.py" for name in modules]
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-k", "not notebooks and not links"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -t {int(limit)}; exec "$@"', "sh", *command]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    said = done.stdout.decode(errors="replace")[-1000:] or "out of time"
    return said if done.returncode else ""


def nearest_first(path: str) -> list[str]:
    """The quick modules, those that name a file's module before the others."""
    name = re.compile(rf"\b{Path(path).stem}\b")
    texts = {module: (ROOT / "tests" / f"test_{module}.py").read_text() for module in TESTS}
    return sorted(TESTS, key=lambda module: name.search(texts[module]) is None)


_tree: Path | None = None


def survived(job: tuple[Mutant, float]) -> tuple[Mutant, bool]:
    """Whether no test fails for the mutant; each worker has one tree."""
    global _tree
    mutant, limit = job
    _tree = _tree or tree()
    path = _tree / mutant.path
    kept = path.read_bytes()
    path.write_bytes(mutant.mutation.applied(kept))
    try:
        quick = nearest_first(mutant.path)
        return mutant, not (failure(_tree, quick, limit) or failure(_tree, LATER, 8.0 * limit))
    finally:
        path.write_bytes(kept)


def main() -> int:
    """Read the arguments, run the mutants, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    chosen = parser.parse_args()
    seed = secrets.randbelow(2**32) if chosen.seed is None else chosen.seed
    mutants, began, plain = sampled(seed, chosen.mutants), time.monotonic(), tree()
    try:
        said = failure(plain, TESTS)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        quick = spent.ru_utime + spent.ru_stime
        said = said or failure(plain, LATER)
        if said:
            print(f"the tests fail without any mutant:\n{said}", file=sys.stderr)
            return 2
    finally:
        shutil.rmtree(plain, ignore_errors=True)
    limit = PATIENCE * quick + 10.0
    print(f"{len(mutants)} mutants of seed {seed}; the quick tests take {quick:.0f} s without one",
          file=sys.stderr)  # fmt: skip
    alive = []
    with tempfile.TemporaryDirectory(prefix="perfmodel-mutants-") as folder:
        tempfile.tempdir = folder  # all trees go with it, workers that are stopped included
        with multiprocessing.get_context("fork").Pool(chosen.jobs) as pool:
            jobs = [(mutant, limit) for mutant in mutants]
            for done, (mutant, lives) in enumerate(pool.imap_unordered(survived, jobs), 1):
                alive += [mutant] if lives else []
                print(f"{done}/{len(mutants)} {'SURVIVED' if lives else 'killed  '} {mutant}",
                      file=sys.stderr)  # fmt: skip
    killed = len(mutants) - len(alive)
    print(f"seed {seed}: {killed} of {len(mutants)} mutants killed ({killed / len(mutants):.0%}) "
          f"in {time.monotonic() - began:,.0f} s")  # fmt: skip
    for mutant in sorted(alive, key=str):
        print(f"survived: {mutant}")
    return int(killed < LEAST * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
