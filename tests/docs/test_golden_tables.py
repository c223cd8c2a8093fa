"""Tables at a terminal of 80 columns are those of tests/golden, and fit terminals of any width.

`python tests/goldentables.py` (part of `make docs`) writes the files anew.
"""

import re

import goldentables
import pytest
from transcripts import run

from perfmodel.render import table

FILES = [pytest.param(*item, id=item[0].stem) for item in goldentables.files()]


_UNIT = re.compile(r"\s*([kMGTPEµmn]|[KMGTPE]i(?=B))?(B|B/s|s|FLOP|FLOP/s|OP|OP/s|Hz|W)(\s|,|;|$)")


@pytest.mark.parametrize(("path", "command"), FILES)
def test_tables_are_as_they_were_looked_at_and_fit(path, command):
    """No line begins with a unit, and nothing is cut, whatever the width."""
    shown = {width: goldentables.shown(command, width) for width in (goldentables.WIDTH, 200)}
    for width, printed in shown.items():
        for line in printed.splitlines():
            assert len(line) <= width, line
            assert not _UNIT.match(line), line
            assert "…" not in line
    assert shown[goldentables.WIDTH] == path.read_text(encoding="utf-8"), "`make docs` writes it"


def test_there_is_no_file_of_another_command():
    kept = {path for path, _ in goldentables.files()}
    assert set(goldentables.GOLDEN.iterdir()) == kept


def test_a_narrower_terminal_shows_no_other_numbers():
    given = "perfmodel predict attention -d a100,h100 --seq 1k,4k"
    wide = set(run(given, 200).split())
    told = {"not", "in", "columns:", *f"({table._BRIEFER})".split()}
    for width in (40, 60, 80, 100):
        percents = {word for word in run(given, width).split() if re.match(r"[+-]\d+%", word)}
        other = set(run(given, width).split()) - wide - told - percents - {str(width)}
        assert all(word.rstrip(",") in wide | told or "─" in word for word in other), other
