"""The documents: examples run and print what is shown, and links have targets.

`make docs` writes the shown output anew after a change that moves predictions.
"""

import re
import tomllib

import pytest
import transcripts
from transcripts import ROOT

DOCUMENTS = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in transcripts.documents()]


@pytest.fixture
def workplace():
    """A folder to run in."""
    with transcripts.workplace() as folder:
        yield folder


@pytest.fixture
def packages(workplace, monkeypatch):
    """A folder on the path, where a document's own package is found as if it were installed."""
    # Not the workplace itself: its links would be a second copy of ours.
    folder = workplace / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize("path", DOCUMENTS)
def test_commands_print_what_is_shown(path, workplace):
    for block in transcripts.blocks(path.read_text(encoding="utf-8"), "console"):
        for example in filter(transcripts.runnable, transcripts.examples(block)):
            printed = transcripts.run(example.command)
            if not transcripts.matches(example.shown, printed):
                place = f"{path.name}, block at line {block.line}: $ {example.command}"
                assert printed == example.shown, f"{place} (`make docs` writes it anew)"


@pytest.fixture
def registry():
    """The kernels' registry, asked afresh before and after: a document may announce its own."""
    pytest.importorskip("triton")
    from perfmodel.proof import registry

    registry.refresh()
    yield registry
    registry.refresh()


@pytest.mark.parametrize("path", DOCUMENTS)
def test_python_runs(path, packages, request):
    document = path.read_text(encoding="utf-8")
    blocks = transcripts.blocks(document, "python")
    if any(block.file for block in blocks):
        request.getfixturevalue("registry")
        announce(document, packages)
    namespace = {"__name__": path.stem}
    for block in blocks:
        if block.file:
            target = packages / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            continue
        printed = transcripts.execute(block, str(path), namespace)
        if block.prints is not None and not transcripts.matches(block.prints, printed):
            assert printed == block.prints, f"{path.name}, block at line {block.line}"


def announce(document, folder):
    """Make the entry points of a document's TOML blocks known, as installing its package would."""
    for number, block in enumerate(transcripts.blocks(document, "toml")):
        groups = tomllib.loads(block.text).get("project", {}).get("entry-points", {})
        info = folder / f"documented_{number}-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: documented-{number}\nVersion: 0\n", encoding="utf-8"
        )
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


_LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")


def anchors(text):
    """Anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for link in _LINK.findall(prose):
        if re.match(r"https?://|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), f"{path.name} links to {link}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_print_and_draw_what_they_show(path):
    notebooks = pytest.importorskip("notebooks", reason="running notebooks needs nbclient")
    shown = notebooks.read(path)
    counts = [cell.execution_count for cell in shown.cells if cell.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)], f"{path.name}: run it as a whole"
    printed = notebooks.printed(notebooks.executed(path))
    assert "(picture)\n" in printed
    assert printed == notebooks.printed(shown), f"{path.name} (`make docs` runs it anew)"


def test_shown_output_may_be_elided():
    assert transcripts.matches("a\n...\nz\n", "a\nb\nc\nz\n")
    assert transcripts.matches("took ... s\n", "took 1.2 s\n")
    assert not transcripts.matches("a\n", "a\nb\n")
    assert transcripts.elided("a\n...\nz\n", "A\nb\nc\nZ\n") == "A\n...\nZ\n"
    assert transcripts.elided("old\n", "new\n") == "new\n"
    shown = "...\nhbm 1 us\n...\npower 3 us\n"
    assert transcripts.elided(shown, "head\nhbm 2 us\nl2 4 us\npower 9 us\n") == (
        "...\nhbm 2 us\n...\npower 9 us\n"
    )


def test_console_blocks_are_cut_into_commands():
    text = "```console\n$ perfmodel a \\\n    b\nout\n$ pip x\n```\n"
    (block,) = transcripts.blocks(text, "console")
    first, second = transcripts.examples(block)
    assert (first.command.split(), first.shown) == (["perfmodel", "a", "b"], "out\n")
    assert not transcripts.runnable(second)
    assert transcripts.blocks("<!-- not run: slow -->\n" + text, "console") == []
