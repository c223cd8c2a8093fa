"""Tables at terminals of 80, 120 and 200 columns are those of tests/golden, and fit.

`python tests/goldentables.py` (part of `make docs`) writes the files anew.
"""

import re

import goldentables
import pytest
from transcripts import run

from perfmodel.render import table

FILES = [pytest.param(*item, id=item[0].stem) for item in goldentables.files()]


@pytest.mark.parametrize(("path", "command", "width"), FILES)
def test_tables_are_as_they_were_looked_at(path, command, width):
    printed = goldentables.shown(command, width)
    assert printed == path.read_text(encoding="utf-8"), "`make docs` writes it anew"
    assert max(map(len, printed.splitlines())) <= width


def test_there_is_no_file_of_another_command():
    kept = {path for path, _, _ in goldentables.files()}
    assert set(goldentables.GOLDEN.iterdir()) == kept


_UNIT = re.compile(r"\s*([kMGTPEµmn]|[KMGTPE]i(?=B))?(B|B/s|s|FLOP|FLOP/s|OP|OP/s|Hz|W)(\s|,|;|$)")


def test_no_line_begins_with_a_unit_and_nothing_is_cut():
    for path, _, _ in goldentables.files():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not _UNIT.match(line), f"{path.name}: {line}"
            assert "…" not in line


def test_a_narrower_terminal_shows_no_other_numbers():
    given = "perfmodel predict attention -d a100,h100 --seq 1k,4k"
    wide = set(run(given, 200).split())
    told = {"not", "in", "columns:", *f"({table._BRIEFER})".split()}
    for width in (40, 60, 80, 100):
        percents = {word for word in run(given, width).split() if re.match(r"[+-]\d+%", word)}
        other = set(run(given, width).split()) - wide - told - percents - {str(width)}
        assert all(word.rstrip(",") in wide | told or "─" in word for word in other), other
