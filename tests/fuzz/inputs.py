"""One input of the fuzzer: a command line, the files that it finds, and how it is connected."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Input:
    """A whole command in a folder of its own.

    `files` are put there before, by path. `encoding` is that of standard output, `terminal` whether
    it says that it is one; `stdin` is what standard input holds.
    """

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    encoding: str = "utf-8"
    terminal: bool = False

    def place(self, folder: Path) -> None:
        """Write the files into `folder`."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def dumps(self) -> str:
        """As JSON, to be kept."""
        document = {
            "kind": self.kind,
            "arguments": list(self.arguments),
            "files": {name: _text(content) for name, content in self.files.items()},
            "stdin": _text(self.stdin),
            "encoding": self.encoding,
            "terminal": self.terminal,
        }
        return json.dumps(document, indent=1) + "\n"

    @staticmethod
    def loads(text: str) -> Input:
        """The input that `dumps` wrote."""
        found = json.loads(text)
        files = {name: _bytes(content) for name, content in found["files"].items()}
        return Input(
            found["kind"], tuple(found["arguments"]), files, _bytes(found["stdin"]),
            found["encoding"], found["terminal"],
        )  # fmt: skip


def _text(content: bytes) -> str | dict[str, str]:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _bytes(content: str | dict[str, str]) -> bytes:
    return content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
