"""Runs the parts of a sweep on a Dask scheduler (extra `dask`), on many machines.

Workers write the files themselves, so they must share the output folder. A part that is run twice,
because a worker died or seemed to, writes the same bytes to the same file.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from perfmodel.analysis.sweep.plan import Sweep, model_hash
from perfmodel.analysis.sweep.store import write_part
from perfmodel.errors import OutputError, PerfmodelError, needs

TIMEOUT = 3.0
"""Seconds to wait for a scheduler's answer."""

_AHEAD = 4  # parts submitted per thread, so that workers never wait


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address`.

    Raises `OutputError` where Dask is not installed, the scheduler does not answer within
    `TIMEOUT`, or it has no workers.
    """
    client = _client(address)
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise OutputError(f"the Dask scheduler at {address!r} has no workers; start one")
        yield client
    finally:
        client.close()


def _client(address: str) -> Any:
    needs("distributed", "--dask")
    from distributed import Client

    try:
        with ThreadPoolExecutor(1) as pool:  # a notebook's event loop already runs in this thread
            pool.submit(lambda: asyncio.run(_greet(address))).result()
        return Client(address, timeout=TIMEOUT, set_as_default=False)
    except Exception as error:  # the server there may not be a Dask scheduler
        message = " ".join(str(error).split())[:120] or "no answer in time"
        raise OutputError(f"no Dask scheduler answers at {address!r} ({message})") from None


async def _greet(address: str) -> None:
    """Do the scheduler's handshake first: a `Client` that cannot connect would keep retrying for
    long."""
    from distributed.comm import connect

    comm = await asyncio.wait_for(connect(address, timeout=TIMEOUT), TIMEOUT)
    await comm.close()


def write(client: Any, sweep: Sweep, folder: Path, todo: Sequence[int]) -> Iterator[int]:
    """Let workers write the parts `todo`, a few submitted ahead; yields the rows of each finished
    part.

    Raises `OutputError` if a part fails on the workers.
    """
    from distributed import as_completed

    queue = iter(todo)
    count = _AHEAD * (sum(client.nthreads().values()) or 1)
    blob, name = packed((sweep, folder)), uuid4().hex

    def submit(i: int) -> Any:
        return client.submit(_write, blob, i, pure=False, key=f"perfmodel-{name}-{i}")

    futures = as_completed([submit(i) for i in islice(queue, count)], loop=client.loop)
    for future in futures:
        with told("a part"):
            rows: int = future.result()
        yield rows
        for i in islice(queue, 1):
            futures.add(submit(i))


def _write(blob: bytes, i: int) -> int:
    sweep, folder = unpacked(blob)
    return write_part(sweep, folder, i)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn any error of a worker but our own into an `OutputError` that names `what` it gave up."""
    try:
        yield
    except PerfmodelError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:160]
        raise OutputError(f"the Dask workers gave {what} up: {message}") from None


def packed(job: Any) -> bytes:
    """What every task of a run needs, for `unpacked` on a worker."""
    return pickle.dumps((job, model_hash()))


@lru_cache(maxsize=2)
def unpacked(blob: bytes) -> Any:
    """The job, unpacked once in each worker. Raises `OutputError` if the worker's model differs."""
    job, model = pickle.loads(blob)
    if model != model_hash():
        raise OutputError("a Dask worker has another version of perfmodel; install the same one")
    return job
