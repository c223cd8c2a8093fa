"""Commands in another process: each is a fork of one that has imported nothing of perfmodel, so
that it starts with the packages, files and caches of its own environment and at little cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from folders import ROOT

SERVER = """
import json, os, sys
import click, numpy, pydantic, yaml
for line in sys.stdin:
    child = os.fork()
    if not child:
        for number, name in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        from perfmodel.cli import main
        main(json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Elsewhere:
    """Runs commands in a folder, with other folders first on the path."""

    def __init__(self, folder: Path, *path: Path, **environment: str) -> None:
        self._folder = folder
        places = os.pathsep.join(map(str, (*path, ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], cwd=folder, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": places, **environment},
        )  # fmt: skip

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = ((self._folder / name).read_text("utf-8") for name in (".out", ".err"))
        return code, out, err

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)
