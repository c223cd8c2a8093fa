"""Tables as a terminal of 80 columns shows them, in files of tests/golden, one a command.

`python tests/goldentables.py` (part of `make docs`) writes them anew, after a change that moves
predictions or the tables themselves: look at the difference before you commit it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")
WIDTH = 80

COMMANDS = {
    "predict": "predict attention -d a100,h100 --seq 1k:16k:x4 --schedule standard,tiled",
    "predict-one": "predict gemm -d mi300x -m 16 -n 8k -k 8k",
    "predict-terms": "predict attention -d h100 --heads 32 --kv-heads 8 --seq 4k --causal --terms",
    "predict-declared": "predict mla -d h100 --seq 4k --batch 64 --schedule auto,unfused",
    "graph": "graph decoder-layer -d h100 --size batch=4",
    "whatif": 'whatif gemm -d h100 --change "HBM x2"',
    "hardware-list": "hardware list --vendor intel,amd",
    "hardware-show": "hardware show h100",
    "hardware-diff": "hardware diff a100-sxm4-80gb h100-sxm",
    "list": "list schedules,levels",
    "show": "show harness cuda_graph",
    "compare": "compare {published} --where direction=fwd --by device,implementation",
    "trend": "trend",
    "network-list": "network list --family llama,mixtral",
}
"""Commands by the names of their files."""


def shown(command: str, width: int = WIDTH) -> str:
    """What a command shows at a terminal of that width."""
    from transcripts import run

    from perfmodel.table import records

    published = Path(records.__file__).with_name("published.csv")
    return run(f"perfmodel {command.format(published=shlex.quote(str(published)))}", width)


def files() -> Iterator[tuple[Path, str]]:
    """Each file with its command."""
    for name, command in COMMANDS.items():
        yield GOLDEN / f"{name}.txt", command


def main() -> None:
    """Write every file anew, and remove those of no command."""
    GOLDEN.mkdir(exist_ok=True)
    kept = set()
    for path, command in files():
        path.write_text(shown(command), encoding="utf-8")
        kept.add(path)
    for path in GOLDEN.glob("*.txt"):
        if path not in kept:
            path.unlink()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
