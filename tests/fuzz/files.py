"""Files of every kind that a command reads: those that are shipped or written, damaged."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

from commands import device, mishap, options, shown
from damage import damaged
from dice import Dice
from inputs import Input

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
sys.path.append(str(TESTS))
import profilersamples  # noqa: E402
import reportresults  # noqa: E402

READERS: dict[str, tuple[float, tuple[str, ...]]] = {
    "specs": (16, (
        "hardware validate {}", "hardware validate {} --warnings", "hardware show ./{}",
        "hardware diff ./{} a100", "predict gemm -d ./{}", "predict attention -d ./{} --seq 1k",
        "whatif softmax -d ./{}", "trend -d ./{}",
    )),
    "systems": (2, ("validate {}", "collective all-reduce -s ./{} --bytes 1M")),
    "algorithms": (6, (
        "explain {}", "explain {} --schedule standard", "explain {} --m 5", "predict ./{} -d h100",
        "predict ./{} -d h100 --mesh m=2@nvlink", "sweep ./{} -d h100 --best",
        "map {} -d h100-sxm --objective bytes --capacity 1MiB",
    )),
    "graphs": (5, ("graph {} -d h100", "graph {} -d h100 --by operator",
                   "graph {} -d a100 -s x=1")),
    "networks": (4, ("network {} -d a100 --seq 128", "train {} -d a100 --seq 128",
                     "network show {}")),
    "configs": (4, ("network import {}", "network import {} --family llama")),
    "engines": (2, ("validate {}", "infer llama-3-8b -d h100 --engine {} --batch 4")),
    "libraries": (2, ("validate {}", "validate --as library {}")),
    "runs": (14, (
        "compare {}", "compare {} --explain", "compare {} --by op,device --include-flags",
        "compare {} -o out.csv", "compare {} --where op=gemm", "compare {} --map m=k",
        "compare {} --set dtype=bf16", "compare {} --max-error 20% --unit ms",
        "roofline gemm -d h100-sxm --measured {} -o roof.svg",
    )),
    "profiles": (10, (
        "counters import {} -d h100-sxm", "counters import {} -d h100-sxm --cases cases.csv",
        "counters import {} -d a100 -o out.csv", "profile {} -d h100-sxm",
        "profile {} -d h100-sxm --graph decoder-layer",
    )),
    "results": (6, ("report {} -o page.html",)),
    "sweeps": (8, ("sweep ask sweep --best", "sweep ask sweep --where 'time_us > 0'",
                   "sweep ask sweep --pareto time,bytes --per device", "again")),
}  # fmt: skip
"""What reads a file of each kind, and how often it is drawn."""
SWEEPS = (
    ("softmax", "-d", "h100-sxm,b200", "--rows", "1:6", "--cols", "64,4k", "--chunk", "5"),
    ("attention", "-d", "a100", "--heads", "8", "--kv-heads", "2,3,8", "--seq", "1,512",
     "--chunk", "4"),
    ("gemm", "-d", "h100-sxm", "-m", "1:20", "--dtype", "bf16,fp8"),
)  # fmt: skip
MORE = {
    "predict": "predict attention -d h100,mi300x --seq 512,2k --heads 32 --kv-heads 8 --causal",
    "whatif": "whatif gemm -d h100 --m 1k",
    "graph": "graph decoder-layer -d h100",
    "trace": f"trace {TESTS / 'tracedmodels.py'}:GatedMlp -i x:bf16[1,64,512] -d h100",
}
"""Commands beside those of `reportresults`."""
Samples = tuple[tuple[str, bytes], ...]
_HEAVY = ("conv", "mla", "moe", "scan", "linear", "sparse", "delta", "lightning", "retention")


def make(dice: Dice) -> Input:
    """A command that reads a damaged file, or a folder in which some are."""
    (kind,) = dice.choices(list(READERS), [weight for weight, _ in READERS.values()])
    if kind == "sweeps":
        return _asked(dice)
    name, data = dice.choice(samples(kind))
    files = {name: damaged(dice, name, data)}
    if kind == "profiles":
        files["cases.csv"] = damaged(dice, "cases.csv", profilersamples.CASES.encode())
    arguments = dice.choice(READERS[kind][1]).format(name).split()
    if "a100" in arguments and dice.chance(0.5):
        arguments[arguments.index("a100")] = device(dice)
    arguments += _beside(dice, arguments)
    return Input(kind, tuple(arguments), files, terminal=dice.chance(0.1))


def _beside(dice: Dice, arguments: list[str]) -> list[str]:
    """A format, options of the command, and now and then another word."""
    words = (arguments[0],)
    if words[0] in ("hardware", "counters", "collective") or arguments[1:2] == ["import"]:
        words = tuple(arguments[:2])
    quiet = words[0] in ("roofline", "report", "validate") or "validate" in words
    found = [] if quiet or "import" in words else shown(dice)
    if words[0] in ("compare", "profile", "counters", "trend"):
        found += options(dice, words, 0.03)
    return mishap(dice, [*found, "x"])[:-1] if found and dice.chance(0.03) else found


def _named(pattern: str, name: str, among: Callable[[Path], bool] = lambda _: True) -> Samples:
    return tuple((name, path.read_bytes()) for path in sorted(ROOT.glob(pattern)) if among(path))


@cache
def samples(kind: str) -> Samples:
    """Sound files of a kind: what each is called, and its bytes."""
    if kind == "networks":
        from perfmodel.networks import library, reading

        names = ("llama-3-8b", "gpt2", "gpt-oss-20b", "deepseek-v2-lite")
        return tuple(("mine.yaml", reading.text(library.load(n)).encode()) for n in names)
    if kind == "runs":
        return (*((path.name, path.read_bytes()) for path in (TESTS / "layouts").iterdir()),
                *_runs() * 3)  # fmt: skip
    if kind == "profiles":
        texts = [text for text, _ in profilersamples.SAMPLES.values()]
        return tuple(("trace.json" if t[0] in "{[" else "run.csv", t.encode()) for t in texts)
    if kind == "results":
        return tuple(sound().items())
    declared = {
        "specs": ("hardware_specs/*.yaml", "spec.yaml"),
        "systems": ("hardware_specs/systems/*.yaml", "mine.yaml"),
        "algorithms": ("perfmodel/algorithms/declared/*.yaml", "mine.yaml"),
        "graphs": ("perfmodel/graph/declared/*.yaml", "mine.yaml"),
        "configs": ("tests/configs/*.json", "config.json"),
        "engines": ("perfmodel/serving/engines/*.yaml", "mine.yaml"),
        "libraries": ("perfmodel/timing/libraries/*.yaml", "mine.yaml"),
    }
    return _named(*declared[kind], lambda path: not any(word in path.stem for word in _HEAVY))


@cache
def _runs() -> Samples:
    """Measured runs of every operation that has some, in the formats that are read."""
    from perfmodel.table.records import published, write_table

    table = published().groupby("op").head(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"runs.{suffix}") for suffix in ("csv", "csv.gz", "parquet")]
        for path in paths:
            write_table(table, path)
        return tuple((path.name, path.read_bytes()) for path in paths)


@cache
def sound() -> dict[str, bytes]:
    """A result file of each kind, by name."""
    with tempfile.TemporaryDirectory() as name, redirect_stderr(io.StringIO()):
        folder = Path(name)
        reportresults.write(folder, MORE)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@cache
def finished(which: int) -> dict[str, bytes]:
    """The files of one of the sweeps."""
    from perfmodel.cli import run

    with tempfile.TemporaryDirectory() as name, redirect_stderr(io.StringIO()):
        assert run(["sweep", *SWEEPS[which], "--output", f"{name}/sweep"]) == 0
        folder = Path(name) / "sweep"
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
        return {str(path.relative_to(folder.parent)): path.read_bytes() for path in sorted(paths)}


def _asked(dice: Dice) -> Input:
    """A question to a sweep of which files are damaged, exchanged or gone; or the sweep again."""
    which = dice.randrange(len(SWEEPS))
    files = dict(finished(which))
    for _ in range(dice.choice((1, 1, 2))):
        name = "sweep/manifest.json" if dice.chance(0.5) else dice.choice(sorted(files))
        if name in files:
            files[name] = dice.choice((
                *[damaged(dice, name, files[name])] * 8, files[dice.choice(sorted(files))], b"",
            ))  # fmt: skip
            if dice.chance(0.1):
                del files[name]
        if not files:
            break
    command = dice.choice(READERS["sweeps"][1])
    if command == "again":
        return Input("sweeps", ("sweep", *SWEEPS[which], "--output", "sweep"), files)
    arguments = [*shlex.split(command), *shown(dice), *options(dice, ("sweep", "ask"), 0.1)]
    return Input("sweeps", tuple(arguments), files)
