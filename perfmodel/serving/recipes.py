"""Published settings of benchmarks that their tables leave out, by source, engine and architecture.

A cell of a row comes before them. Every setting is read in the benchmark's own scripts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.hardware import Device
from perfmodel.serving.engine import Engine


@dataclass(frozen=True)
class Recipe:
    """How a benchmark starts an engine, and what it publishes."""

    source: str
    """How names of its tables begin."""
    cited: str
    """Where the settings stand."""
    statistic: str = ""
    """Statistic of first tokens; empty: the mean."""
    engine: str = ""
    """The engine; empty: any."""
    architecture: str = ""
    """How the device's architecture begins; empty: any."""
    cache: str = ""
    """Type of the KV cache; empty: the engine's."""
    tokens: int = 0
    """Most tokens of a step; 0: the engine's."""
    polls: tuple[tuple[int, int], ...] = ()
    """Clients from which on, and steps from one look at new requests to the next."""

    def polled(self, engine: Engine, clients: float) -> Engine:
        """The engine with these settings under a number of clients."""
        polls = [steps for least, steps in self.polls if clients >= least]
        batching = replace(
            engine.batching,
            tokens=self.tokens or engine.batching.tokens,
            poll=polls[-1] if polls else engine.batching.poll,
        )
        return replace(engine, batching=batching)


_SCRIPTS = "SemiAnalysisAI/InferenceX, benchmarks/single_node, dsr1_*"
_POLLED = "--scheduler-recv-interval 10, 30 from 16 clients on"
_NONE = Recipe("", "")
RECIPES = (
    Recipe(
        "inferencex", f"{_SCRIPTS}_b200.sh: {_POLLED}; --kv-cache-dtype fp8_e4m3", "p50",
        "sglang", "Blackwell", "fp8", 32768, ((0, 10), (16, 30)),
    ),
    Recipe(
        "inferencex", f"{_SCRIPTS}_mi355x.sh: --num-continuous-decode-steps 4; "
        "--kv-cache-dtype fp8_e4m3; --max-prefill-tokens 196608", "p50", "sglang", "CDNA4", "fp8",
        196608, ((0, 4),),
    ),
    Recipe(
        "inferencex", f"{_SCRIPTS}_mi300x.sh: --num-continuous-decode-steps 4; "
        "--max-prefill-tokens 131072 (its fp8 cache of latents has no kernel here)", "p50",
        "sglang", "CDNA3", "", 131072, ((0, 4),),
    ),
    Recipe(
        "inferencex", f"{_SCRIPTS}_h200.sh: --max-prefill-tokens 32768", "p50", "sglang",
        "Hopper", "", 32768,
    ),
    Recipe("inferencex", f"{_SCRIPTS}_mi355x_atom.sh: --kv_cache_dtype fp8", "p50", "atom",
           "CDNA4", "fp8"),
    Recipe("inferencex", "SemiAnalysisAI/InferenceX: medians", "p50"),
)  # fmt: skip
"""Every recipe; the first that matches counts."""


def recipe(source: str, engine: str, device: Device) -> Recipe:
    """The settings of a row's source; without any where none is known."""
    for one in RECIPES:
        if (
            source.lower().startswith(one.source)
            and one.engine in ("", engine)
            and device.architecture.startswith(one.architecture)
        ):
            return one
    return _NONE
