"""`explain` and `map` as a reader and as a script see them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from cases import listed

from perfmodel.algorithms import library
from perfmodel.cli.explain import app as explain_app
from perfmodel.cli.map_ import app as map_app
from perfmodel.hardware import load
from perfmodel.napkin.explain import explain
from perfmodel.render import explanation


def run(app, *arguments):
    """The command as the entry point runs it: errors come out as exceptions."""
    app(list(arguments), standalone_mode=False)


@pytest.fixture(scope="module")
def attention():
    found = library.load("attention")
    return explain(
        found.at(seq=8192, heads=1),
        device=load("h100-sxm"),
        about=found.about,
        source=found.source,
        extents=found.extents,
    )


def test_attention_in_text(attention):
    text = "".join(explanation.as_text(attention))
    for line in (
        "for every tile of g_q of q at once",
        "load K[s_x, d], V[s_x, e]",
        "P = softmax(S)  normalised along x",
        "read  K      d·x·⌈q/g_q⌉",
        "g_q* = M/(d + e)",
        "H* = q·x·(d + e)² · M^-1 + q·(d + e)",
        "β = 1: a tenth of M moves 10× as much; half the bits move 4× fewer bytes",
        "x: stream — step softmax normalises along x: blocks would share a normaliser",
        "M = 247,296 elements of bf16 in a block's shared memory and registers",
        "g_q by 64, s_x by 16",
    ):
        assert line in text, text


def test_the_numbers_of_attention(attention):
    (page,) = attention.kernels
    numbers = page.numbers
    # 4·q·x·d²/M + 2·q·d at d = e = 128, M = 227 + 256 KiB of two-byte elements.
    assert numbers.best_elements == pytest.approx(4 * 8192**2 * 128**2 / 247296 + 2 * 8192 * 128)
    assert numbers.best_tiles["q"] == pytest.approx(966)
    for tiling in numbers.tilings:
        assert tiling.tiles["q"] % 64 == 0
        assert tiling.tiles["x"] % 16 == 0
        assert tiling.shared_bytes <= 227 * 1024
        assert tiling.elements >= numbers.best_elements
    least = min(numbers.tilings, key=lambda tiling: tiling.bytes)
    trips = -(-8192 // least.tiles["q"])
    assert least.elements == 2 * 8192 * 128 * (1 + trips)


def test_json_and_markdown(attention):
    (document,) = explanation.as_json(attention)
    found = json.loads(document)
    assert found["schema_version"] == 1
    assert found["kernels"][0]["optimum"]["terms"][0]["beta"] == "1"
    assert found["kernels"][0]["numbers"]["divisibility"] == {"q": 64, "x": 16}
    text = "".join(explanation.as_markdown(attention))
    assert text.startswith("## attention, tiled schedule: 1 kernel")
    assert text.count("```") % 2 == 0


def balanced(text):
    """Whether braces, environments, \\left and \\right and dollars all close."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    begun = re.findall(r"\\begin\{(\w+\*?)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+\*?)\}", text))
    assert len(re.findall(r"\\left\W", text)) == len(re.findall(r"\\right\W", text))
    return depth == 0 and len(re.findall(r"(?<!\\)\$", text)) % 2 == 0


PAGES = listed(__file__, "PAGES")


@pytest.mark.parametrize(("name", "sizes", "schedule"), PAGES)
def test_latex_is_well_formed(name, sizes, schedule, tmp_path):
    answer = explain(library.load(name).at(**sizes), schedule=schedule, about="100 % of A & B_c")
    text = "".join(explanation.as_latex(answer))
    assert balanced(text)
    assert text.startswith("\\documentclass")
    assert text.endswith("\\end{document}\n")
    # pdflatex reads Latin letters as they are and nothing beyond.
    assert all(ord(letter) < 256 for letter in text)
    if shutil.which("pdflatex"):
        (tmp_path / "page.tex").write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_unfused_attention_has_a_page_a_step():
    answer = explain(library.load("attention").at(), schedule="standard")
    assert [page.nest.steps for page in answer.kernels] == [("scores",), ("softmax",), ("values",)]
    # d = 128 < √M: whole rows of one operand are held and the other streams past them, once a tile.
    assert [str(page.optimum.beta) for page in answer.kernels] == ["1", "0", "1"]
    assert answer.kernels[0].bound.name.startswith("COSMA")


def test_flash_attention_1_rewrites_its_output():
    (page,) = explain(library.load("attention").at(heads=1), schedule="tiled-1").kernels
    assert [text for _, text in page.loops] == [
        "for every tile of s_x of x in turn",
        "load K[s_x, d], V[s_x, e]",
        "for every tile of s_q of q in turn",
        "load Q[s_q, d]",
        "load what there is of O",
        "S += scores(Q, K)  summed over d",
        "P = softmax(S)  normalised along x",
        "O += values(P, V)  summed over x",
        "store O[s_q, e]",
    ]
    # Q and O per key tile: three passes of N·d for each, where FlashAttention-2 has two.
    assert str(page.optimum.tiles["x"]) == "M/(d + e)"


def test_auto_is_what_the_mapper_finds():
    answer = explain(library.load("mlp").at(), schedule="auto", device=load("h100-sxm"))
    assert len(answer.kernels) > 1


def test_the_command_writes_a_file(tmp_path, capsys):
    path = tmp_path / "page.tex"
    run(explain_app, "matmul", "--m", "1k", "--output", str(path))
    assert path.read_text().startswith("\\documentclass")
    run(explain_app, "matmul", "-d", "h100-sxm", "--m=2048")
    assert "g_m* = √(M)" in capsys.readouterr().out
    run(explain_app)
    assert "butterfly-attention: Attention in a flat butterfly pattern" in capsys.readouterr().out


def test_an_algorithm_of_ones_own(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\nparameters: {n: 1000}\naxes: {i: n, j: n}\n"
        "tensors: {A: [i, j], v: [j], y: {axes: [i], element: output}}\n"
        "steps: {product: {contraction: [A, v], to: y, over: j}}\noutputs: y\n"
    )
    run(explain_app, str(path), "--n", "64", "--grid", "i", "--stream", "j")
    text = capsys.readouterr().out
    assert "read  v      j·⌈i/g_i⌉" in text
    assert "compulsory" in text


# -- map -------------------------------------------------------------------------------------------


def test_map_in_json(capsys):
    run(map_app, "attention", "-d", "h100-sxm", "--seq", "2k", "--format", "json", "--trace")
    found = json.loads(capsys.readouterr().out)
    (kernel,) = found["kernels"]
    assert kernel["kernel"] == "scores + softmax + values"
    assert kernel["stream"].startswith("x/")
    assert any(said.startswith("fastest: ") for said in found["trace"])


def test_map_for_bytes(capsys):
    run(map_app, "mlp", "--objective", "bytes", "--capacity", "50 MiB")
    assert "fusing everything pays" in capsys.readouterr().out
    run(map_app, "mlp", "--objective", "bytes", "-d", "h100-sxm")
    assert "fusing everything does not pay: it moves 1" in capsys.readouterr().out


def test_map_draws(tmp_path):
    path = tmp_path / "slope.svg"
    run(map_app, "matmul", "--objective", "bytes", "-d", "a100", "--chart", str(path))
    assert path.read_text().startswith("<?xml")
