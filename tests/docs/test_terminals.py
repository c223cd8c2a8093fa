"""Tables fit a terminal of any width. The documents show them at 100 columns, word for word."""

import re

from cases import cases
from transcripts import run

from perfmodel.render import table

_UNIT = re.compile(r"\s*([kMGTPEµmn]|[KMGTPE]i(?=B))?(B|B/s|s|FLOP|FLOP/s|OP|OP/s|Hz|W)(\s|,|;|$)")


@cases
def test_no_line_is_cut_or_too_long_or_begins_with_a_unit(command):
    for line in run(f"perfmodel {command}", 80).splitlines():
        assert len(line) <= 80, line
        assert not _UNIT.match(line), line
        assert "…" not in line


def test_a_narrower_terminal_shows_no_other_numbers():
    given = "perfmodel predict attention -d a100,h100 --seq 1k,4k"
    wide = set(run(given, 200).split())
    told = {"not", "in", "columns:", *f"({table._BRIEFER})".split()}
    for width in (40, 60, 80, 100):
        shown = run(given, width).split()
        percents = {word for word in shown if re.match(r"[+-]\d+%", word)}
        other = set(shown) - wide - told - percents - {str(width)}
        assert all(word.rstrip(",") in wide | told or "─" in word for word in other), other
