"""Random parts of inputs: sizes, names, hostile words, damaged texts and bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

HOSTILE = (
    "", " ", "-", "--", "0", "-1", "1e400", "nan", "NaN", "inf", "-inf", "None", "null", "true",
    "\x00", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)",
    "<script>alert(1)</script>", "<img onerror=x>", "[a](javascript:b)", "|", "`", "\\", "\t",
    "\n", "\r\n", "\u202ehidden", "\ufeff", "\ud800", "ﬁ", "µ", "⌈x⌉", "五", "١٢٣", "🦆", "a" * 300,
    "9" * 40, "9" * 5000, "../../etc/passwd", "/", ".", "{}", "[]", "{", "((((", "%s", "{0}", "!!x",
    "&a", "*a", "!!python/object/apply:os.system [id]", "é", "\udcff", "'", '"', ",", ";", "x" * 70,
)  # fmt: skip
DEVICES = (
    "h100-sxm", "a100", "b200", "v100-sxm2", "t4", "mi300x", "rtx4090", "tpu-v4", "gc200", "wse-2",
    "amd-epyc-9654", "jetson-orin-64gb", "p100-sxm2", "groq-lpu", "gaudi2", "m4-max",
)  # fmt: skip
TYPES = (
    "bf16",
    "fp16",
    "fp32",
    "fp64",
    "tf32",
    "fp8",
    "int8",
    "w4a16",
    "fp8_block",
    "nvfp4",
    "int4",
)


class Dice(Random):
    """A random generator of typical and hostile inputs of this program."""

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.random() < share

    def hostile(self) -> str:
        """A hostile word."""
        return self.choice(HOSTILE)

    def size(self, most: float = 41.0) -> str:
        """One size: mostly ordinary, sometimes at the edge."""
        draw = self.random()
        if draw < 0.75:
            return str(2 ** self.randrange(0, 15))
        if draw < 0.85:
            return str(int(2 ** self.uniform(0, most)))
        if draw < 0.92:
            return f"{self.randrange(1, 64)}{self.choice('kkKmMG')}"
        return self.choice(
            ("1", "1", "1", "3", "7", "33", "127", "129", "1000", "0", "1024G", str(2**40 + 1))
        )

    def sizes(self) -> str:
        """A value of an option that takes sizes: one, a few, now and then nonsense."""
        draw = self.random()
        if draw < 0.7:
            return self.size()
        if draw < 0.8:
            return ",".join(self.size() for _ in range(self.randrange(2, 5)))
        if draw < 0.9:
            start = self.randrange(1, 200)
            return f"{start}:{start + self.randrange(0, 30)}:{self.randrange(1, 9)}"
        if draw < 0.94:
            stop = self.choice(("4k", "64k", "99"))
            return f"{self.randrange(1, 99)}:{stop}:x{self.randrange(2, 5)}"
        if draw < 0.985:
            return self.size()
        if draw < 0.993:
            return self.damaged(f"{self.randrange(1, 99)}:{self.randrange(1, 999)}")
        return self.hostile()

    def damaged(self, text: str) -> str:
        """`text` with one to three small mishaps."""
        for _ in range(self.randrange(1, 4)):
            place = self.randrange(len(text) + 1)
            draw = self.randrange(5)
            if draw == 0:
                text = text[:place] + text[place + 1 :]
            elif draw == 1:
                text = text[:place] + self.hostile()[:100] + text[place:]
            elif draw == 2:
                text = (
                    text[:place] + self.choice("0:,.-x=+*/()[]{}'\"| \t\nE%#é") + text[place + 1 :]
                )
            elif draw == 3:
                text = text[:place]
            else:
                other = self.randrange(len(text) + 1)
                text = text[:place] + text[other : other + 20] + text[place:]
        return text

    def broken(self, content: bytes) -> bytes:
        """`content` with bytes flipped, removed, doubled, or cut at the end."""
        data = bytearray(content)
        for _ in range(self.choice((1, 1, 2, 5))):
            if not data:
                break
            place, span = self.randrange(len(data)), self.randrange(1, 40)
            draw = self.randrange(5)
            if draw == 0:
                data[place] = self.randrange(256)
            elif draw == 1:
                del data[place : place + span]
            elif draw == 2:
                data[place:place] = data[place : place + span]
            elif draw == 3:
                data[place] ^= 1 << self.randrange(8)
            else:
                del data[place:]
        return bytes(data)

    def value(self) -> Any:
        """A plain value such as a document may hold in any place."""
        return self.choice((
            None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 1.5, -0.0, 1e308, "", "x", [], {},
            [1], [[]], {"a": 1}, {"start": 1, "stop": 0, "step": 0}, self.hostile(),
        ))  # fmt: skip

    def document(self, found: Any) -> Any:
        """A JSON document with something in it replaced, removed, added or doubled."""
        found = json.loads(json.dumps(found))
        holder, key = found, None
        while isinstance(holder, dict | list) and holder:
            key = self.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if not isinstance(holder[key], dict | list) or not holder[key] or self.chance(0.35):
                break
            holder = holder[key]
        if key is None:
            return self.value()
        draw = self.randrange(4)
        if draw == 0:
            del holder[key]
        elif draw == 1 and isinstance(holder, dict):
            holder[self.hostile()] = holder[key]
        elif draw == 2 and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = self.value()
        return found

    def some(self, items: Sequence[Any], share: float) -> list[Any]:
        """Each of `items` with this chance."""
        return [item for item in items if self.chance(share)]
