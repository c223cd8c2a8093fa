"""What a document reads aloud below an output is what the outputs of that section say.

`make docs` writes outputs anew and leaves the sentences; this names the sentences that fell behind,
and those whose block stands in another section.
"""

import re

import pytest
from transcripts import ROOT, documents

UNITS = "%|s|ms|µs|ns|KiB|MiB|GiB|TiB|kB|MB|GB|TB|GB/s|TB/s|FLOP|GFLOP|TFLOP|TFLOP/s|tokens|kernels"
QUANTITY = re.compile(rf"(?<![\w.,×-])(\d[\d,]*(?:\.\d+)?)\s(?:{UNITS})(?![\w/])")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# The paragraph right below a block: no heading, table, list, picture or block.
READING = re.compile(r"^```\n\n(?![#|!<`*-])(.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|80 % range")


def plain(text):
    """Numbers without commas between thousands."""
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)


def sections(document):
    """The parts of a document under one heading each; `#` in a block is no heading."""
    prose = BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), document)
    starts = [0, *(found.start() for found in re.finditer(r"^#+ ", prose, re.MULTILINE))]
    return [document[a:b] for a, b in zip(starts, [*starts[1:], len(document)], strict=True)]


def unheard(document):
    """(number, sentence) read aloud below a block, where no number in a block of the same section
    rounds to it."""
    for section in sections(document):
        yield from unheard_in(section)


def unheard_in(section):
    """The same in one section. Shares may be shown as fractions."""
    blocks = plain("\n".join(BLOCK.findall(section)))
    shown = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", blocks)]
    shown += [100 * number for number in shown if number < 1]
    for paragraph in READING.findall(section):
        for number in QUANTITY.findall(plain(LITERAL.sub("", paragraph))):
            half = 0.5 * 10.0 ** -len(number.partition(".")[2])
            if not any(abs(float(number) - one) <= half * (1 + 1e-9) for one in shown):
                yield number, " ".join(paragraph.split())[:60]


# Quick starts and recipes also reckon with what is shown, which this cannot follow.
PATHS = [
    pytest.param(path, id=str(path.relative_to(ROOT)))
    for path in documents()
    if path.parent.name != "start" and path.stem != "recipes"
]


@pytest.mark.parametrize("path", PATHS)
def test_what_is_read_aloud_is_shown(path):
    assert not list(unheard(path.read_text(encoding="utf-8")))


def test_a_sentence_that_fell_behind_is_found():
    page = (
        "```console\n$ perfmodel predict\n1,024 ms, 12.5%\n```\n\nIt takes 1,024 ms, {} % of it.\n"
    )
    assert not list(unheard(page.format("12.5")))
    assert not list(unheard(page.format("13")))
    assert [number for number, _ in unheard(page.format("12.6"))] == ["12.6"]


def test_a_block_in_another_section_is_not_read():
    block = "```console\n$ perfmodel predict\n1,024 ms\n```\n"
    other = "```console\n$ perfmodel show\n# 7\n```\n"
    page = "## Reading\n\n{}\nIt takes 1,024 ms.\n\n## Errors\n\n{}"
    assert not list(unheard(page.format(block, other)))
    assert [number for number, _ in unheard(page.format(other, block))] == ["1024"]
