"""Text from elsewhere: what prints, what an encoding can hold, what a spreadsheet would run."""

import csv
import io
import re

import pytest
from cases import cases, listed
from hypothesis import example, given
from hypothesis import strategies as st

from perfmodel.plaintext import LOOKALIKES, csv_cell, csv_text, printable, quoted


@cases
def test_what_does_not_print_is_dropped(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_printable_text_prints_and_stays(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@given(st.text(), st.sampled_from(["ascii", "latin-1", "cp1252", "utf-8"]))
@example("⌈x⌉ ≥ 1 µs → β²", "ascii")
def test_look_alikes_fit_every_encoding_and_leave_the_rest(text, encoding):
    found = text.encode(encoding, LOOKALIKES).decode(encoding)
    kept = text.encode(encoding, "ignore").decode(encoding)
    assert set(kept) <= set(found)
    assert found == text or kept != text


def test_look_alikes_look_alike():
    assert "⌈x⌉ ≥ 1 µs → β·y²".encode("ascii", LOOKALIKES) == b"ceil(x) >= 1 us -> beta*y^2"
    assert "é ½ 語".encode("ascii", LOOKALIKES) == b"e 12 ?"


RUN = listed(__file__, "RUN")


@pytest.mark.parametrize("text", RUN)
def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(text):
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+3.5", "-1e-30", "-.5", "12", "", "h100", "'tis", "a=b"])
def test_numbers_and_plain_words_stay_as_they_are(text):
    assert csv_cell(text) == text
    assert csv_text(text) == text


@given(st.one_of(st.text(), st.from_regex(r"\A'*[=+@\t-].{0,5}\Z")))
def test_a_cell_is_read_back_as_it_was(text):
    cell = csv_cell(text)
    assert csv_text(cell) == text
    assert not re.match("[=+@\t\r-]", cell) or cell == text
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerow([cell])
    if "\x00" not in text and "\r" not in text:
        assert next(csv.reader(io.StringIO(buffer.getvalue(), newline=""))) == [cell]


def test_quoted_text_is_short():
    assert quoted("h10") == "'h10'"
    assert len(quoted("x" * 10_000)) < 100
