"""Damaged profiles: whatever is in a file, it is read or refused in one line.

`mutants` damages the sample files of every format: bytes flipped, lines cut, doubled or swapped,
cells replaced, fields of JSON removed or retyped. A few hundred of its files are tried here; any
number of them by `python tests/unit/test_counter_fuzz.py 20000`.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from profilersamples import SAMPLES

from perfmodel.errors import PerfmodelError
from perfmodel.measured.counters import BYTES, COLUMNS, import_counters

TRIED = 300
NASTY = (
    "", " ", "0", "-1", "1e999", "nan", "inf", "²", "٣", "9" * 5000, "1,234.5", "1_0", "None", "\0",
    '"', '""', "::", "<(", "perfmodel|", "perfmodel|op=gemm", "perfmodel|op=gemm|dtype=bf16|m=x",
    "perfmodel|op=gemm|dtype=bf16|m=²", "=cmd|' /C calc'!A0", "\x1b[31m", "a" * 200_000, "\u2028",
    "\r", "==ERROR== no", "é",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, "", "x", "1e999", [], [1], {}, {"correlation": []}, "²",
    "perfmodel|op=gemm|dtype=bf16|m=²", "kernel", "gpu_user_annotation", "X",
)  # fmt: skip

Damage = Callable[[str, random.Random], str]


def flipped(text: str, pick: random.Random) -> str:
    """A few bytes are others; the result may be no text at all."""
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(pick.randint(1, 8)):
        data[pick.randrange(len(data))] = pick.randrange(256)
    return data.decode("utf-8", "surrogateescape")


def cut(text: str, pick: random.Random) -> str:
    """The end is missing, or a piece in the middle."""
    start, end = sorted(pick.randrange(len(text) + 1) for _ in range(2))
    return text[:start] if pick.random() < 0.5 else text[:start] + text[end:]


def lines(text: str, pick: random.Random) -> str:
    """A line is gone, twice there, somewhere else, or an empty or foreign one is in between."""
    found = text.split("\n")
    place = pick.randrange(len(found))
    line = found.pop(place)
    again = pick.choice([[], [line] * 2, [""], ["==PROF== x"], ["step, 1, loss"], [line[::-1]]])
    for each in again:
        found.insert(pick.randrange(len(found) + 1), each)
    return "\n".join(found)


def celled(text: str, pick: random.Random) -> str:
    """Cells of a table (its header included) hold what they should not."""
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error:
        return text
    for _ in range(pick.randint(1, 4)):
        row = pick.choice(rows)
        if row:
            row[pick.randrange(len(row))] = pick.choice(NASTY)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def columns(text: str, pick: random.Random) -> str:
    """A column of a table is gone, or called as another one."""
    rows = [line.split(",") for line in text.split("\n")]
    place = pick.randrange(max(map(len, rows)))
    if pick.random() < 0.5:
        return "\n".join(",".join(row[:place] + row[place + 1 :]) for row in rows)
    names = sorted(set(re.findall(r"[A-Za-z][\w .()%/]+", text)))
    header = max(range(len(rows)), key=lambda i: len(rows[i]))
    rows[header][place % len(rows[header])] = pick.choice(names or ["x"])
    return "\n".join(",".join(row) for row in rows)


def retyped(text: str, pick: random.Random) -> str:
    """Fields of a JSON document are gone or of another type, or it is deep."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(document, dict | list):
        return text
    if pick.random() < 0.03:
        return text.replace("[", "[" * 20_000, 1)
    for _ in range(pick.randint(1, 3)):
        holder = pick.choice(list(_holders(document)))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            continue
        key = pick.choice(keys)
        if pick.random() < 0.4:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(pick.choice(VALUES))
    return json.dumps(document)


def _holders(value: Any) -> Iterator[Any]:
    """Every list and mapping of a document."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _holders(each)


DAMAGES: tuple[Damage, ...] = (flipped, cut, lines, celled, columns, retyped)


def mutants(count: int, seed: int) -> Iterator[tuple[str, str, str | None]]:
    """(format, a damaged file, its table of cases, which may be the one that is damaged)."""
    pick = random.Random(seed)
    names = sorted(SAMPLES)
    for i in range(count):
        name = names[i % len(names)]
        text, cases = SAMPLES[name]
        if cases is not None and pick.random() < 0.25:
            cases = _damaged(cases, pick)
        else:
            text = _damaged(text, pick)
        yield name, text, cases


def _damaged(text: str, pick: random.Random) -> str:
    for _ in range(pick.randint(1, 3)):
        text = pick.choice(DAMAGES)(text, pick) if text else pick.choice(NASTY)
    return text


def trouble(folder: Path, text: str, cases: str | None) -> str:
    """What is wrong with how a file was taken; empty where it was read or refused in one line."""
    profile, table = folder / "profile", folder / "cases.csv"
    profile.write_bytes(text.encode("utf-8", "surrogateescape"))
    table.write_bytes((cases or "").encode("utf-8", "surrogateescape"))
    try:
        rows, said = import_counters(profile, device="x", cases=None if cases is None else table)
    except PerfmodelError as error:
        line = str(error)
        if "\n" in line or len(line) > 2000:
            return f"not one line: {line[:200]!r}"
        return "" if str(folder) in line else f"no file named: {line[:200]!r}"
    except Exception as error:  # what this is here to find
        return f"{type(error).__name__}: {error}"[:300]
    if not rows or any("\n" in line for line in said):
        return "no rows, or a message of several lines"
    return next((wrong for row in rows if (wrong := _wrong(row))), "")


def _wrong(row: dict[str, str]) -> str:
    """What a row says that no measured run can say."""
    if set(row) != set(COLUMNS):
        return "other columns"
    time = row["measured_us"]
    if (time == "") != (row["flag"] == "failed") or not float(time or 1) > 0:
        return f"time {time!r} and flag {row['flag']!r}"
    numbers = (float(row[name]) for name in BYTES if row[name])
    return "" if all(0 <= value < 1e40 for value in numbers) else "bytes that cannot be"


@pytest.mark.parametrize("seed", range(10))
def test_damaged_profiles_are_read_or_refused_in_one_line(seed: int, tmp_path: Path) -> None:
    for name, text, cases in mutants(TRIED // 10, seed):
        found = trouble(tmp_path, text, cases)
        assert found == "", (name, text[:2000], cases)


def test_the_samples_are_read_as_they_are(tmp_path: Path) -> None:
    for name, (text, cases) in SAMPLES.items():
        assert trouble(tmp_path, text, cases) == "", name


def test_the_damage_reaches_every_format_and_does_not_always_break_it(tmp_path: Path) -> None:
    """A fuzzer whose files are all refused at the first line would find nothing."""
    read: dict[str, list[bool]] = {}
    for name, text, cases in mutants(200, 99):
        profile, table = tmp_path / "p", tmp_path / "c.csv"
        profile.write_bytes(text.encode("utf-8", "surrogateescape"))
        table.write_bytes((cases or "").encode("utf-8", "surrogateescape"))
        try:
            import_counters(profile, device="x", cases=None if cases is None else table)
        except PerfmodelError:
            read.setdefault(name, []).append(False)
        else:
            read.setdefault(name, []).append(True)
    assert set(read) == set(SAMPLES)
    assert 0.1 < sum(map(sum, read.values())) / 200 < 0.9


def main(count: int, seed: int = 1) -> int:
    """Try many; print each kind of trouble once, and how many there were."""
    kinds: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text, cases in mutants(count, seed):
            found = trouble(Path(folder), text, cases)
            if found:
                kind = f"{name}: {re.sub(r'[0-9]+', '#', found)[:160]}"
                kinds[kind] = kinds.get(kind, 0) + 1
    for kind, times in sorted(kinds.items(), key=lambda pair: -pair[1]):
        print(times, kind)
    print(f"{sum(kinds.values())} of {count} files in trouble")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
