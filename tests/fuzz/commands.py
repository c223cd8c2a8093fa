"""Whole command lines: every command but those that need a GPU or minutes, right and wrong."""

from __future__ import annotations

from collections.abc import Callable

from dice import DEVICES, HOSTILE, TYPES, Dice
from inputs import Input
from spreading import spread

SCHEDULES = ("auto", "standard", "tiled", "tiled-1", "tiled-2", "tiled-3", "split-kv", "split-k")
IMPLEMENTATIONS = (
    "flash1", "flash2", "flash3", "flash4", "cudnn", "eager", "cublas", "cutlass-fp8", "deepgemm",
    "fused-rows", "torch-softmax", "weight-only", "vllm-0.24.0:vllm_flash_attn_fa3", "torch",
    "trtllm-xqa", "xformers", "FlashAttention-2", "foo", "flash2,flash3", "cpu-blocked",
    "blas", "cublas-fp32", "torch-pointwise", "flat-quantise", "sglang", "triton", "aiter",
)  # fmt: skip
HARNESSES = ("kernel", "profiler", "cuda_graph", "cuda_events_eager", "wall_clock", "do_bench")
VARIANTS = ("add", "gelu", "silu_mul", "relu", "pow_scalar", "div", "where", "foo", "add,gelu")
OPERATORS = {
    "attention": (
        "--batch", "--heads", "--kv-heads", "--seq", "--seq-q", "--seq-kv", "--head-dim",
        "--head-dim-v", "--window",
    ),
    "gemm": ("-m", "-n", "-k", "--batch"),
    "softmax": ("--rows", "--cols"),
    "layernorm": ("--rows", "--cols"),
    "rmsnorm": ("--rows", "--cols"),
    "pointwise": ("--rows", "--cols", "--inputs", "--outputs"),
    "quantise": ("--rows", "--cols"),
}  # fmt: skip
ALGORITHMS = (
    "attention", "block-sparse-attention", "butterfly-attention", "cross-entropy", "gated-mlp",
    "gqa", "kernel-matvec", "layernorm-matmul", "linear-attention", "matmul", "mla", "mlp", "moe",
    "softmax",
)  # fmt: skip
_FORMATS = ("json", "csv", "markdown", "table")
_FILES = ("out.json", "out.csv", "out.md", "out.txt", "out", "out.xml", "no/such/out.csv", "-", ".")


LONG = ("measure", "calibrate", "demo")  # run only with arguments that stop them


def make(dice: Dice) -> Input:
    """A command line."""
    makers: list[tuple[Callable[[Dice], list[str]], float]] = [
        (_predict, 44), (_whatif, 7), (_sweep, 12), (_roofline, 1), (_hardware, 12), (_explain, 4),
        (_map, 1.2), (_trend, 1), (_list, 4), (_show, 5), (_bad, 8), (_help, 3), (_compare, 2),
        (_collective, 4),
    ]  # fmt: skip
    (maker,) = dice.choices([maker for maker, _ in makers], [weight for _, weight in makers])
    arguments = maker(dice)
    if arguments and arguments[0] not in LONG and dice.chance(0.08):
        arguments = mishap(dice, arguments)
    return Input(
        "commands",
        tuple(arguments),
        encoding=dice.choices(("utf-8", "latin-1", "ascii", "cp1252"), (8, 1, 1, 1))[0],
        terminal=dice.chance(0.1),
    )


def mishap(dice: Dice, arguments: list[str]) -> list[str]:
    """The words with one change: a word removed, doubled, swapped, damaged or added."""
    arguments = list(arguments)
    place = dice.randrange(len(arguments))
    draw = dice.randrange(5)
    if draw == 0:
        del arguments[place]
    elif draw == 1:
        arguments.insert(place, arguments[dice.randrange(len(arguments))])
    elif draw == 2:
        arguments[place] = dice.hostile()
    elif draw == 3:
        arguments[place] = dice.damaged(arguments[place])
    else:
        arguments.insert(place + 1, dice.hostile())
    return _counted(arguments)


def _counted(arguments: list[str]) -> list[str]:
    """Shorten ranges that a change made too long to run quickly."""
    found = []
    for word in arguments:
        longest = max((len(part) for part in word.split(":")), default=0)
        found.append(word if ":" not in word or longest < 4 else word.replace(":", ","))
    return found


def device(dice: Dice) -> str:
    """A device's name, mostly a real one."""
    if dice.chance(0.03):
        return dice.choice((*HOSTILE, "h10", "./none.yaml", "H100 SXM", "a100,h100", "none.yaml"))
    return dice.choice(DEVICES)


def problem(dice: Dice, operator: str, *, share: float = 0.4) -> list[str]:
    """Options of an operator."""
    found = []
    for flag in dice.some(OPERATORS[operator], share):
        if flag == "--kv-heads" and dice.chance(0.8):
            found += ["--heads", "32", flag, dice.choice(("1", "2", "4", "8", "32", "1,8"))]
        elif flag.startswith("--head-dim") and dice.chance(0.8):
            found += [flag, dice.choice(("64", "128", "256", "80", "64,128"))]
        else:
            found += [flag, dice.sizes()]
    kinds: list[list[str]] = [
        ["--dtype", dice.choice((*TYPES, "bf16", "bf16", "bf16,fp8", "fp17"))]
    ]
    if operator == "attention":
        kinds += [["--causal"], ["--padding-mask"], ["--dropout"], ["--keys-only"]]
        kinds += [["--kv-dtype", dice.choice(TYPES)]]
    if operator not in ("gemm", "quantise"):
        kinds += [["--direction", dice.choice(("fwd", "bwd", "fwdbwd", "fwd,bwd", "up"))]]
    if operator == "pointwise":
        kinds += [["--variant", dice.choice(VARIANTS)]]
    if operator == "quantise":
        kinds += [["--output-dtype", dice.choice(TYPES)]]
    return found + [word for kind in dice.some(kinds, 0.3) for word in kind]


def how(dice: Dice) -> list[str]:
    """Schedule, implementation and harness."""
    found: list[str] = []
    if dice.chance(0.25):
        found += ["--schedule", dice.choice((*SCHEDULES, "standard,tiled", "foo", ","))]
    if dice.chance(0.25):
        found += ["--implementation", dice.choice(IMPLEMENTATIONS)]
    if dice.chance(0.15):
        found += ["--harness", dice.choice((*HARNESSES, "foo"))]
    return found


def shown(dice: Dice, *, files: bool = True) -> list[str]:
    """Format and output."""
    found: list[str] = []
    if dice.chance(0.7):
        found += ["--format", dice.choice(_FORMATS) if dice.chance(0.97) else dice.hostile()]
    if files and dice.chance(0.15):
        found += ["--output", dice.choice(_FILES)]
    return found


def question(dice: Dice) -> list[str]:
    """A question to a sweep."""
    found = dice.choice((["--best"], ["--best"], [], ["--pareto", "time,bytes"]))
    for flag, words in (
        (
            "--by",
            ("time_us", "time / batch", "0/0", "time_us + bytes_hbm", "-time", "limiter", "m"),
        ),
        ("--per", ("device", "dtype", "seq_q", "m", "limiter,device", "foo", "rows")),
        ("--where", CONDITIONS),
        (
            "--pareto",
            ("time,bytes", "time", "time,memory,waves", "time,limiter", "foo,bar", "time,"),
        ),
        ("--limit", ("0", "1", "5", "5", "50", "-1", "9" * 20)),
    ):
        if dice.chance(0.25 if flag != "--pareto" else 0.05):
            word = dice.choice(words)
            found = [*found, flag, dice.damaged(word) if dice.chance(0.1) else word]
    return found or ["--where", "time_us > 0"]


CONDITIONS = (
    "time_us < 100", "time_us < 100 and batch > 1", "limiter == hbm", "device != 'b200'",
    "not (time > 1)", "causal", "causal == true", "1 < 2", "time", "time / 0 > 1", "0/0 == 0/0",
    "reason == ''", "-time < -1", "1+1+1+1 < time", "time < 1 < 2", "and", "(((time < 1)))",
    " + ".join(["1"] * 400) + " < time", "-" * 50 + "time < 1", "dtype == bf16 or dtype == \"fp8\"",
)  # fmt: skip


def _predict(dice: Dice) -> list[str]:
    operator = dice.choice(list(OPERATORS))
    found = ["predict", operator, "--device", device(dice)]
    if dice.chance(0.1):
        found += ["-d", device(dice)]
    found += [*problem(dice, operator), *how(dice), *spread(dice, operator), *shown(dice)]
    if dice.chance(0.02):  # more cases than anything allows
        found += [*OPERATORS[operator][:1], "1:9000000", *OPERATORS[operator][1:2], "1:9000000"]
    return [*found, "--terms"] if dice.chance(0.25) else found


def _whatif(dice: Dice) -> list[str]:
    operator = dice.choice(list(OPERATORS))
    found = ["whatif", operator, "--device", device(dice), *problem(dice, operator, share=0.25)]
    numbers = ("HBM", "L2", "SRAM", "SM", "clock", "matrix", "exp", "latency", "power", "launch")
    amounts = ("x2", "/2", "+50%", "-10%", "x0", "x1e30", "-100%", " 160", " 2 GHz", "x0.001",
               "x1000",
               " 3 TB/s", " 1 us", "x", " 40 MiB", "x0.5", " 1e30 TB/s", "x1e999")  # fmt: skip
    for _ in range(dice.randrange(0, 3)):
        change = dice.choice(numbers) + dice.choice(amounts)
        change = dice.choice((change, change, change, dice.choice(TYPES), dice.hostile()))
        found += ["--change", dice.damaged(change) if dice.chance(0.1) else change]
    if dice.chance(0.01):
        found += ["--chart", dice.choice(("tornado.svg", "tornado.xml"))]
    return found + how(dice) + spread(dice, operator) + shown(dice)


def _sweep(dice: Dice) -> list[str]:
    operator = dice.choice(list(OPERATORS))
    found = ["sweep", operator, "-d", dice.choice((device(dice), "h100-sxm,b200", "a100,a100"))]
    found += [*problem(dice, operator, share=0.25), *how(dice), *question(dice)]
    found += spread(dice, operator, most=0.08)
    found += shown(dice, files=False)
    if dice.chance(0.2):
        found += [
            "--output",
            dice.choice(("folder", "folder", "no/such", "/dev/null", "\x00", ".")),
        ]
    if dice.chance(0.05):
        found += ["--chunk", dice.choice(("1", "7", "0", "-1", "x"))]
    if dice.chance(0.02):
        found += ["--chart", dice.choice(("front.svg", "front.xml"))]
    return found


def _roofline(dice: Dice) -> list[str]:
    operator = dice.choice(list(OPERATORS))
    found = ["roofline", operator, "-d", device(dice), *problem(dice, operator, share=0.25)]
    found += ["-o", dice.choice(("roof.svg", "roof.svg", "roof.xml", "no/such/roof.svg"))]
    if dice.chance(0.3):
        found += ["--level", dice.choice(("hbm", "hbm,l2", "foo", ","))]
    if dice.chance(0.3):
        found += ["--roof", dice.choice((*TYPES, "foo", ","))]
    if dice.chance(0.3):
        found += ["--size", dice.choice(("6x4", "1x1", "60x60", "x", "nanxnan", "0x3"))]
    return found + how(dice)[:2] + spread(dice, operator, place=False)


def _hardware(dice: Dice) -> list[str]:
    action = dice.choice(("list", "show", "validate", "diff", "show", "diff", "schema", "foo"))
    found = ["hardware", action]
    if action in ("show", "diff"):
        found += [device(dice) for _ in range(1 + (action == "diff"))]
    if action == "validate":
        found += [dice.choice(("no.yaml", ".", "/dev/null", "/dev/zero", "\x00"))]
    if action == "list" and dice.chance(0.5):
        found += ["--vendor", dice.choice(("NVIDIA", "amd", "foo", dice.hostile()))]
    return found + (shown(dice) if action in ("list", "show", "diff") else [])


def _explain(dice: Dice) -> list[str]:
    found = ["explain", dice.choice((*ALGORITHMS, "foo", "none.yaml"))]
    found += _declared(dice)
    for flag, words in (
        ("--schedule", ("tiled", "standard", "tiled-1", "auto", "foo")),
        ("--fuse", ("scores+softmax,values", "scores,softmax,values", "multiply", "foo", "+", ",")),
        ("--grid", ("q", "b,g,q", "m", "foo", "")),
        ("--stream", ("x", "k", "foo", "")),
        ("--format", ("text", "markdown", "latex", "json", "foo")),
        ("--output", ("out.tex", "out.md", "out.xml", "-")),
    ):
        if dice.chance(0.15):
            found += [flag, dice.choice(words)]
    return found


def _map(dice: Dice) -> list[str]:
    found = ["map", dice.choice(("attention", "matmul", "softmax", "mlp", "gqa", "foo"))]
    found += [*_declared(dice), *shown(dice)]
    if dice.chance(0.4):
        found += ["--objective", dice.choice(("bytes", "time", "foo"))]
        found += ["--level", dice.choice(("shared", "L2", "foo"))]
    if dice.chance(0.2):
        found += ["--capacity", dice.choice(("25 MiB", "0 B", "1 B", "1e300 B", "x", "5"))]
    return [*found, "--trace"] if dice.chance(0.2) else found


def _declared(dice: Dice) -> list[str]:
    """Device and sizes of a declared algorithm."""
    found: list[str] = []
    if dice.chance(0.6):
        found += ["--device", device(dice)]
    for flag in dice.some(
        ("--seq", "--batch", "--heads", "--m", "--k", "--head-dim", "--foo"), 0.2
    ):
        word = dice.choice((dice.size(), "0.5", "1e308", "nan", "1:4", dice.hostile()))
        found += [f"{flag}={word}"] if dice.chance(0.3) else [flag, word]
    if dice.chance(0.1):
        found += ["--causal"]
    if dice.chance(0.2):
        found += ["--dtype", dice.choice((*TYPES, "foo"))]
    return found


def _trend(dice: Dice) -> list[str]:
    return ["trend", *(["-d", device(dice)] * dice.randrange(0, 3)), *shown(dice)]


def _list(dice: Dice) -> list[str]:
    kinds = (
        "implementations", "schedules", "harnesses", "types", "variants", "operators", "algorithms",
        "graphs", "levels", "devices", "systems", "foo",
    )  # fmt: skip
    found = ["list", *dice.some((dice.choice(kinds),), 0.9)]
    if dice.chance(0.5):
        found += ["--operator", dice.choice((*OPERATORS, "foo"))]
    return found + shown(dice)


def _show(dice: Dice) -> list[str]:
    kind = dice.choice((
        "implementation", "implementation", "implementation", "harness", "operator", "schedule",
        "type", "variant", "algorithm", "graph", "level", "device", "foo", "implementations",
    ))  # fmt: skip
    names = {
        "implementation": IMPLEMENTATIONS,
        "harness": HARNESSES,
        "operator": (*OPERATORS, *ALGORITHMS, "none.yaml", "."),
        "schedule": SCHEDULES,
        "type": TYPES,
        "variant": VARIANTS,
        "algorithm": ALGORITHMS,
        "graph": ("decoder-layer", "unfused-attention"),
        "level": ("hbm", "l2", "host"),
        "device": DEVICES,
    }.get(kind, HOSTILE)
    name = dice.choice(names) if dice.chance(0.9) else dice.hostile()
    return ["show", kind, name, *dice.some(("--all",), 0.3), *shown(dice)]


def _compare(dice: Dice) -> list[str]:
    return [
        "compare",
        dice.choice(("no.csv", ".", "/dev/null", "no.parquet", "\x00")),
        *dice.choice(([], [], ["--kind", "collective"], ["--kind", "foo"])),
        *shown(dice),
    ]


def _collective(dice: Dice) -> list[str]:
    op = dice.choice((
        "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce",
        "send-receive", "wall", "foo",
    ))  # fmt: skip
    found = ["collective", op]
    for _ in range(dice.choice((1, 1, 1, 0, 2))):
        systems = ("dgx-h100", "gb200-nvl72", "8xl40s", "a40-pairs", "tpu-v5p-pod", "dgx-h101")
        found += ["--system", dice.choice((*systems, *DEVICES, dice.hostile()))]
    flags = ("--hidden", "--heads", "--kv-heads") if op == "wall" else (
        "--bytes", "--ranks", "--ranks-per-node")  # fmt: skip
    for flag in dice.some(flags, 0.4):
        found += [flag, dice.choice((dice.size(), dice.sizes(), "2", "8", "64"))]
    if dice.chance(0.2):
        found += ["--dtype", dice.choice((*TYPES, "foo"))]
    if op != "wall" and dice.chance(0.2):
        found += ["--library", dice.choice(("nccl", "vllm", "sglang", "tensorrt-llm", "foo"))]
    return found + shown(dice)


def _bad(dice: Dice) -> list[str]:
    """Commands that would take long, with arguments that stop them."""
    return dice.choice((
        ["measure", "--device", "tpu"], ["measure", "--l2", "hot"], ["measure", "--samples", "1"],
        ["measure", "--device", dice.hostile() or "x"], ["measure", "--limit-seconds", "x"],
        ["calibrate", "--device", "tpu"], ["calibrate", "--output", "spec.xml"],
        ["calibrate", "--readings", "none.json"], ["calibrate", "--save-readings", "x.xml"],
        ["calibrate", "--format", "foo"], ["demo", "--output-dir", "/dev/null/x"],
        ["demo", "--foo"], ["counters", "import", "none.csv", "-d", "h100-sxm"], ["counters"],
        ["counters", "import", "none.csv"], ["counters", "import", "\x00", "-d", "a100"],
        ["prdict"], [dice.hostile()], [], ["--foo"], ["predict"], ["hardware"], ["sweep", "ask"],
        ["sweep", "ask", "none"], ["sweep", "ask", "none", "--best"],
        ["sweep", "ask", "\x00", "--best"], ["replay", "foo"], ["compile", "foo"],
        ["replay", "matmul", "--foo", "3"], ["compile", "matmul", "-t", "sm_1"],
        ["replay", dice.hostile()], ["compile", "softmax", "--config", dice.hostile()],
        ["compile", "matmul", "-d", "tpu-v4"], ["replay", "softmax", "-d", dice.hostile()],
        ["replay", "softmax", "--rows", "x"], ["compile", "matmul", "-m"],
    ))  # fmt: skip


def _help(dice: Dice) -> list[str]:
    names = (
        "predict", "compare", "roofline", "whatif", "sweep", "trend", "explain", "map", "list",
        "measure", "calibrate", "counters", "hardware", "demo", "replay", "compile", "graph",
        "show", "collective",
    )  # fmt: skip
    return [dice.choice(names), *dice.some((dice.choice(list(OPERATORS)),), 0.4), "--help"]
