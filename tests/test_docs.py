"""The documents are true: their examples run and print what is shown, their links lead somewhere.

`make docs` writes the shown output anew after a change that moves predictions.
"""

import json
import os
import re
import subprocess
import sys
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
    from perfmodel.evidence import registry

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


def test_notebooks_run():
    pytest.importorskip("nbmake")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbmake"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [*command, str(ROOT / "notebooks")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


# Notebooks that are read without being run, so that they keep what they print and draw.
KEPT = {"03-training-against-three-walls.ipynb", "04-serving-which-wall-when.ipynb"}


def test_notebooks_carry_no_output_or_all_of_it():
    notebooks = {path.name: path for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks.keys() >= KEPT
    for name, path in notebooks.items():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        if name not in KEPT:
            assert not any(cell["outputs"] for cell in code), f"{name}: strip its outputs"
            continue
        counts = [cell["execution_count"] for cell in code]
        assert counts == [*range(1, len(code) + 1)], f"{name}: run it as a whole"
        kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
        assert kinds <= {"stream", "display_data", "execute_result"}, f"{name}: {kinds}"
        assert kinds, f"{name}: keep its outputs"


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
