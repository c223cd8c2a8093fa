"""Freeze what commands answer: `make freeze OUT=x.parquet`, then `make freeze FROM=x.parquet`.

Each of 20,000 seeded command lines is run in this process with `--format json`; the numbers of its
answer are kept by their place in it, bit for bit. A change that moves code and no physics leaves
them equal. Cases that differ are listed by command, with the largest relative difference as the
example, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

Options = Mapping[str, Sequence[str]]
POWERS = tuple(str(2**power) for power in range(13))
SIZES = (*POWERS, "3", "80", "200", "1000", "4100", "11008", "28672")
SMALL = ("1", "2", "4", "8")
FLOATS = ("bf16", "fp16", "fp32")
HARNESSES = ("kernel", "profiler", "cuda_graph", "cuda_events_eager", "wall_clock", "do_bench")
NETWORKS = ("gpt2-xl", "bert-base", "llama-3-8b", "llama-2-7b", "gpt-oss-20b", "deepseek-v3",
            "qwen3-30b-a3b", "gemma-2-9b", "mixtral-8x7b", "gpt3-175b")  # fmt: skip
SYSTEMS = ("dgx-h100", "dgx-a100", "gb200-nvl72", "8xl40s", "8xmi300x", "tpu-v4-pod")
ROWS: Options = {
    "--rows": SIZES, "--cols": SIZES, "--dtype": FLOATS, "--harness": HARNESSES,
    "--direction": ("fwd", "bwd"), "--implementation": ("torch", "transformers"),
}  # fmt: skip
COMMANDS: dict[str, tuple[int, Options, tuple[str, ...]]] = {
    "predict attention": (4600, {
        "--batch": SMALL, "--heads": ("8", "16", "32", "64"), "--kv-heads": ("1", "2", "8"),
        "--seq-q": ("1", *SIZES), "--seq-kv": SIZES, "--head-dim": ("64", "128", "256"),
        "--dtype": (*FLOATS, "fp8"), "--kv-dtype": ("fp8", "bf16"), "--window": ("128", "1024"),
        "--direction": ("fwd", "bwd", "fwdbwd"), "--harness": HARNESSES,
        "--implementation": ("flash1", "flash2", "flash3", "cudnn", "eager", "aiter", "trtllm",
                             "vllm", "sglang", "triton")}, ("--causal", "--padding-mask")),
    "predict gemm": (4600, {
        "-m": SIZES, "-n": SIZES, "-k": SIZES, "--batch": SMALL, "--harness": HARNESSES,
        "--implementation": ("torch", "cublas", "deepgemm", "vllm", "sglang", "trtllm"),
        "--dtype": (*FLOATS, "fp16", "tf32", "fp64", "fp8", "fp8_block", "int8", "w8a8_int8",
                    "w4a16", "w8a16", "nvfp4", "mxfp4")}, ()),
    "predict softmax": (1100, ROWS, ()),
    "predict layernorm": (1100, ROWS, ()),
    "predict rmsnorm": (1100, ROWS, ()),
    "predict pointwise": (1100, {
        **ROWS, "--variant": ("add", "gelu", "silu_mul", "relu", "div")}, ()),
    "predict quantise": (600, {"--rows": SIZES, "--cols": SIZES, "--dtype": ("bf16",)}, ()),
    "predict mlp": (300, {}, ()),
    "predict moe": (300, {}, ()),
    "whatif gemm": (300, {
        "-m": SIZES, "-n": SIZES, "-k": SIZES, "--change": ("HBMx2", "L2x2", "SMx2")}, ()),
    "network NETWORK": (1500, {
        "--batch": SMALL, "--seq": ("128", "512", "2k"), "--dtype": FLOATS,
        "--pass": ("forward", "train", "prefill", "decode"),
        "--stack": ("eager", "compile", "megatron", "te", "liger")}, ()),
    "train NETWORK": (1200, {
        "--system": SYSTEMS, "--gpus": ("8", "16", "64"), "--micro-batch": SMALL,
        "--tensor": SMALL, "--pipeline": SMALL, "--zero": ("0", "1", "2", "3"),
        "--global-batch": ("64", "256"), "--seq": ("512", "2k"),
        "--recompute": ("none", "selective", "full"), "--stack": ("megatron", "te", "compile"),
        "--schedule": ("1f1b", "gpipe", "zb-h1")}, ()),
    "infer NETWORK": (600, {
        "--isl": ("128", "1k"), "--osl": ("16", "128"), "--batch": SMALL, "--tensor": SMALL,
        "--engine": ("ideal", "vllm", "tensorrt-llm", "sglang", "llama.cpp"),
        "--weights": ("bf16", "fp8", "int4-g128"), "--kv": ("fp8", "bf16"),
        "--concurrency": ("1", "8", "64")}, ()),
    "collective OPERATION": (1200, {
        "--system": SYSTEMS, "--bytes": ("1k", "64k", "1M", "64M", "1G"),
        "--ranks": ("2", "8", "16"),
        "--dtype": FLOATS, "--library": ("nccl", "vllm", "sglang", "tensorrt-llm")}, ()),
    "offload NETWORK": (200, {
        "--host": ("xeon-gold-6242",), "--batch": SMALL, "--isl": ("128", "512"),
        "--osl": ("16", "32"), "--policy": ("auto", "recompute", "stream", "layers"),
        "--weights": ("bf16", "int4-g128")}, ()),
    "compress NETWORK": (100, {"--batch": SMALL, "--context": ("128", "2k")}, ()),
    "embedding": (100, {"--tables": SMALL, "--dim": ("64", "128"), "--batch": POWERS[4:]}, ()),
}  # fmt: skip
"""Of each command: its cases, its options with valid words, and its flags."""
OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast",
              "send-receive")  # fmt: skip
NEEDED = {"--system", "--gpus", "--seq", "--host", "--dtype", "-m", "-n", "-k", "--rows", "--cols"}
"""Options that are always given; others, three times in ten."""


def drawn(seed: int, count: int) -> list[list[str]]:
    """Command lines, shared between commands as `COMMANDS` says."""
    from perfmodel.hardware import names

    dice, devices, commands = random.Random(seed), sorted(names()), list(COMMANDS)
    lines = []
    for name in dice.choices(commands, [COMMANDS[name][0] for name in commands], k=count):
        _, options, flags = COMMANDS[name]
        words = {"NETWORK": dice.choice(NETWORKS), "OPERATION": dice.choice(OPERATIONS)}
        line = [words.get(word, word) for word in name.split()]
        if "--system" not in options:
            line += ["--device", dice.choice(devices)]
        for option, values in options.items():
            if option in NEEDED or dice.random() < 0.3:
                line += [option, dice.choice(values)]
        lines.append([*line, *(flag for flag in flags if dice.random() < 0.3), "--format", "json"])
    return lines


def answered(line: Sequence[str]) -> dict[str, float]:
    """The numbers of an answer by their places in it, with the exit code as `code`."""
    from perfmodel.cli import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(line))
    numbers = {"code": float(code)}
    if code != 2:
        numbers |= dict(_numbers(json.loads(out.getvalue()), ""))
    return numbers


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """Every number below `value`."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{place}/{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{place}/{i}")
    elif isinstance(value, int | float):
        yield place, float(value)


def frozen(seed: int, count: int, jobs: int) -> pd.DataFrame:
    """Columns case, command, place, number: every number of every case."""
    lines = drawn(seed, count)
    with multiprocessing.get_context("fork").Pool(
        jobs, os.environ.update, [{"COLUMNS": "80"}]
    ) as pool:
        answers = pool.imap(answered, lines, chunksize=20)
        rows = [
            (case, " ".join(lines[case]), place, number)
            for case, answer in enumerate(answers)
            for place, number in answer.items()
        ]
    table = pd.DataFrame(rows, columns=["case", "command", "place", "number"])
    predicted = (table.loc[table["place"] == "code", "number"] != 2).mean()
    print(f"{count:,} cases, {predicted:.0%} of them predicted, {len(table):,} numbers")
    assert predicted > 0.5, "most of the cases are refused: nothing would be frozen"
    return table


def differing(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Numbers that are not bit-equal; a number that only one side has is missing on the other."""
    keys = ["case", "command", "place"]
    both = before.merge(after, on=keys, how="outer", suffixes=("_before", "_after"))
    one, other = both["number_before"], both["number_after"]
    equal = (one == other) | (one.isna() & other.isna())
    scale = np.maximum(one.abs(), other.abs())
    return both.assign(relative=((one - other).abs() / scale).fillna(1.0))[~equal]


def told(differences: pd.DataFrame) -> list[str]:
    """One line a command that has differences."""
    kinds = differences["command"].str.split().str[:2].str.join(" ")
    lines = []
    for kind, some in differences.groupby(kinds):
        worst = some.loc[some["relative"].idxmax()]
        lines.append(
            f"{kind}: {some['case'].nunique():,} cases; largest difference "
            f"{worst['relative']:.2g}: {worst['place']} {worst['number_before']} -> "
            f"{worst['number_after']} of perfmodel {worst['command']}"
        )
    return lines


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", help="write the numbers to this Parquet file")
    parser.add_argument("--against", help="compare with this Parquet file")
    asked = parser.parse_args()
    if not (asked.output or asked.against):
        parser.error("say --output FILE to keep the numbers, or --against FILE to compare")
    table = frozen(asked.seed, asked.cases, asked.jobs)
    if asked.output:
        table.to_parquet(asked.output, index=False)
    if not asked.against:
        return 0
    differences = differing(pd.read_parquet(asked.against), table)
    print("\n".join(told(differences)) or "bit-equal")
    return int(len(differences) > 0)


if __name__ == "__main__":
    sys.exit(main())
