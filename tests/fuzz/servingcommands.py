"""Served, compressed, offloaded and held networks, and embedding tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commands import device, mishap, shown
from dice import DEVICES, Dice
from inputs import Input

NETWORKS = ("gpt2-xl", "llama-3-8b", "llama-2-7b", "gpt-oss-20b", "deepseek-v2-lite", "foo")
ENGINES = ("ideal", "vllm", "tensorrt-llm", "llama.cpp", "ideal,vllm", "foo", ",")
FORMATS = ("fp16", "bf16", "fp8", "int4-g128", "nvfp4", "2:4", "csl:0.8", "squeeze:3:0.45%", "foo",
           "w4a16:g64", "csl:2", "fp16,fp8")  # fmt: skip
TOKENS = ("1", "128", "1k", "0", "-1", "9" * 20, "1k,2k", "x")
SMALL = ("1", "2", "4", "8", "3", "0", "-1", "1:8:x2", "64", "x")
RATES = ("2 GB/s", "150 GB/s", "0 B/s", "x", "1e400 GB/s")

Options = Mapping[str, Sequence[str]]
COMMANDS: dict[str, Options] = {
    "infer": {
        "--isl": TOKENS, "--osl": TOKENS, "--batch": SMALL, "--concurrency": SMALL,
        "--rate": ("0.5", "1,2", "0", "1e9", "x"), "--load": ("full", "foo"), "--engine": ENGINES,
        "--weights": FORMATS, "--kv": ("fp8", "bf16", "int4", "foo"), "--tp": SMALL, "--pp": SMALL,
        "--ep": SMALL, "--dp": SMALL, "--system": ("dgx-h100", "dgx-a100", "foo"),
        "--fit": ("batch", "context", "foo"), "--cached": ("0.5", "50%", "0", "64,1k", "2", "x%"),
        "--vary": ("0.2", "0", "-1", "nan", "3"), "--statistic": ("p50", "p99", "mean", "foo"),
    },
    "compress": {
        "--formats": FORMATS, "--batch": SMALL, "--context": TOKENS, "--head": FORMATS,
    },
    "hold": {
        "--weights": FORMATS, "--head": FORMATS, "--batch": SMALL, "--context": TOKENS,
        "--price": ("30000", "0", "-1", "nan", "x"), "--stream-rate": RATES,
    },
    "offload": {
        "--host": ("xeon-gold-6242", "h100-sxm", "foo"),
        "--policy": ("auto", "recompute", "stream", "layers", "20,80,0,100,0,100", "1,2", "foo"),
        "--batch": SMALL, "--blocks": SMALL, "--isl": TOKENS, "--osl": TOKENS, "--context": TOKENS,
        "--host-memory": ("208 GB", "0 B", "x"), "--disk-rate": RATES,
        "--disk-size": ("1 TB", "0 B", "x"), "--costs": ("own", "t4-gcp", "foo"),
    },
    "embedding": {
        "--model": ("dlrm-dcnv2", "foo"), "--tables": SMALL, "--rows": ("1M", "1k", "0", "x"),
        "--dim": ("128", "1", "0"), "--lookups": ("26", "214", "0"), "--dtype": ("fp32", "foo"),
        "--zipf": ("0", "1.05", "-1", "nan", "x"), "--batch": SMALL,
        "--host": ("xeon-gold-6242", "foo"), "--cache": ("0.1", "0", "2", "x"), "--shards": SMALL,
    },
}  # fmt: skip
FLAGS = {"infer": "--terms", "offload": "--derive", "embedding": "--lru"}


def make(dice: Dice) -> Input:
    """A command line."""
    name = dice.choice(list(COMMANDS))
    found = [name] if name == "embedding" else [name, dice.choice(NETWORKS)]
    found += ["-d", dice.choice(DEVICES[:8]) if dice.chance(0.7) else device(dice)]
    for flag, words in COMMANDS[name].items():
        if dice.chance(0.2):
            found += [flag, dice.choice(words) if dice.chance(0.95) else dice.hostile()]
    if name in FLAGS and dice.chance(0.2):
        found += [FLAGS[name]]
    found += shown(dice)
    return Input("serving", tuple(mishap(dice, found) if dice.chance(0.08) else found), {})
