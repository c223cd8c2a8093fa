"""Options of requests, and their texts: lengths, cached prefixes, the kind of load and its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from perfmodel.cli import completing, known, ranges
from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted

_LOAD = "Load"
"""Heading of the options."""

Isl = Annotated[
    str,
    typer.Option(
        "--isl", metavar="TOKENS", help="Input length: tokens of a prompt.", rich_help_panel=_LOAD
    ),
]
Osl = Annotated[
    str,
    typer.Option(
        "--osl",
        metavar="TOKENS",
        help="Output length: generated tokens of a request.",
        rich_help_panel=_LOAD,
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="SEQUENCES",
        help="Load: static batches that start and end together: a size, list (1,8) or range "
        "(1:256:x2).",
        rich_help_panel=_LOAD,
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        metavar="CLIENTS",
        help="Load: concurrent clients, each with one request at a time: a size, list or range.",
        rich_help_panel=_LOAD,
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATES",
        help="Load: requests a second, with commas: 0.5,1,2.5.",
        rich_help_panel=_LOAD,
    ),
]
Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="full",
        help="Load: as many concurrent requests as fit.",
        rich_help_panel=_LOAD,
    ),
]
Cached = Annotated[
    str,
    typer.Option(
        "--cached",
        metavar="TOKENS",
        help="Tokens of a prompt that are in the cache already (a prefix), or their share: 512, "
        "0.5, 50%; with commas.",
        rich_help_panel=_LOAD,
    ),
]
Vary = Annotated[
    float,
    typer.Option(
        "--vary",
        metavar="SHARE",
        min=0.0,
        max=2.0,
        help="How much the output lengths of --concurrency vary: (longest - shortest) / mean. "
        "Clients of equal lengths stay in phase.",
        rich_help_panel=_LOAD,
    ),
]
Statistic = Annotated[
    str,
    typer.Option(
        "--statistic",
        metavar="NAME",
        help="Statistic of the time to the first token: mean, p50, p90 or p99.",
        autocompletion=completing.statistics,
        rich_help_panel=_LOAD,
    ),
]


def requested(
    batch: str | None, concurrency: str | None, rate: str | None, load: str | None
) -> tuple[str, Sequence[float]]:
    """The kind of load and its sizes; a batch of 1 by default."""
    texts = {"--batch": batch, "--concurrency": concurrency, "--rate": rate, "--load": load}
    names = [name for name, text in texts.items() if text is not None]
    if len(names) > 1:
        raise ProblemError(f"{' and '.join(names)} are different kinds of load; give one")
    if load is not None:
        known.named("load", load, ("full",))
        return "full", [0.0]
    if rate is not None:
        return "rate", _rates(rate)
    if concurrency is not None:
        return "concurrency", ranges.parse(concurrency, "--concurrency").tolist()
    return "static batch", ranges.parse(batch or "1", "--batch").tolist()


def parts(text: str) -> list[float]:
    """Cached tokens, or below 1 their share, from a list: 512, 1k, 0.5, 50%."""
    values: list[float] = []
    for part in known.names(text):
        if part.endswith("%") or "." in part:
            values.append(_share(part))
        else:
            values += ranges.parse(part, "--cached", 0).tolist()
    return values


def _share(text: str) -> float:
    """A share of a prompt; all of it is all but one token, which is computed."""
    try:
        share = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ProblemError(
            f"--cached {quoted(text)} is no share; write 0.5 or 50%, or a number of tokens"
        )
    return min(share, 1.0 - 1e-9)


def _rates(text: str) -> list[float]:
    """Requests a second from a list."""
    rates = []
    for part in text.split(","):
        try:
            rates.append(float(part))
        except ValueError:
            raise ProblemError(
                f"--rate {quoted(text)} is no list of numbers; write 0.5,1,2.5"
            ) from None
        if not 0.0 < rates[-1] < 1e9:
            raise ProblemError(f"--rate {quoted(part)}: give a number above 0, requests a second")
    return rates
