"""A column is declared once: for predictions a field of `Numbers` and what the model puts there,
for whole networks, training steps and served deployments a property with its heading."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from html import escape

import pytest
from cases import listed
from folders import ROOT

FIELD = '''    blocks: Annotated[Number, Column(key="blocks_per_unit")]
    """Blocks of a unit."""
'''
PROPERTY = '''    @property
    def doubled(self) -> Annotated[float, Column("twice", key="doubled_us", scale=2e6)]:
        """Twice the time."""
        return {value}

'''
NUMBERS = '        "blocks": 2.0 * estimate.occupancy,\n'


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with a column more."""
    folder = tmp_path_factory.mktemp("package")
    # With the bytecode of what stays as it is, which is known by the time of its source.
    shutil.copytree(ROOT / "perfmodel", folder / "perfmodel")
    (folder / "hardware_specs").symlink_to(ROOT / "hardware_specs")
    for name, before, line in (
        ("prediction.py", "    dispatch: Mapping[str, Number]\n", FIELD),
        (
            "graph/tree.py",
            "    @property\n    def operator(",
            PROPERTY.format(value="self.seconds"),
        ),
        (
            "training/result.py",
            "    @property\n    def limiter(",
            PROPERTY.format(value="self.seconds"),
        ),
        (
            "serving/served.py",
            "    @property\n    def limiter(",
            PROPERTY.format(value="self.requests_per_s"),
        ),
        (
            "collectives/collectiveprediction.py",
            '    system: Annotated[str, Column("system")]\n',
            PROPERTY.format(value="self.seconds"),
        ),
        (
            "onchip/holding.py",
            "    @property\n    def fits(",
            PROPERTY.format(value="self.weight_bytes"),
        ),
        ("predict.py", '        "occupancy": estimate.occupancy,\n', NUMBERS),
    ):
        path = folder / "perfmodel" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, line + before), encoding="utf-8")
    return folder


CALLS = """
import contextlib, io, json, sys
from perfmodel.cli import run

texts = []
for call in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(call) == 0, call
    texts.append(out.getvalue())
print(json.dumps(texts))
"""


FORMS = ("json", "csv", "table", "markdown", "latex")
GEMM = ("gemm", "-d", "h100-sxm", "-m", "64,4096")
FIELDS = (
    ("predict", *GEMM, "-f", "json"),
    ("predict", *GEMM, "-f", "csv"),
    ("sweep", *GEMM, "--where", "blocks_per_unit > 0", "-f", "csv"),
)
NOUNS = listed(__file__, "NOUNS")


@pytest.fixture(scope="module")
def outputs(package):
    """What every command prints by its words, all in one process of the copied package."""
    calls = [*FIELDS]
    for command, member, _ in NOUNS:
        calls += [(*command.split(), "-f", form) for form in FORMS]
        calls.append((*command.split(), "-o", f"{member}.json"))
        calls.append(("report", f"{member}.json", "-o", f"{member}.html"))
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(calls)], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(package)}, cwd=package,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(calls, json.loads(done.stdout), strict=True))


def test_a_field_more_is_a_column_of_every_format(outputs):
    text, *tables = (outputs[call] for call in FIELDS)
    predictions = json.loads(text)["predictions"]
    wanted = [2 * row["occupancy"] for row in predictions]
    assert [row["blocks_per_unit"] for row in predictions] == wanted
    for table in tables:
        rows = list(csv.DictReader(io.StringIO(table)))
        assert [float(row["blocks_per_unit"]) for row in rows] == wanted


@pytest.mark.parametrize(("command", "member", "seconds"), NOUNS, ids=[n[1] for n in NOUNS])
def test_a_property_more_is_a_column_of_every_format(package, outputs, command, member, seconds):
    """Of tables for people, data, and the page, whose table and title come from the JSON."""
    document, table, *texts = (outputs[*command.split(), "-f", form] for form in FORMS)
    scale = 2 if seconds.endswith("_us") else 2e6
    for row in (*json.loads(document)[member], *csv.DictReader(io.StringIO(table))):
        assert float(row["doubled_us"]) == pytest.approx(scale * float(row[seconds]))
    assert all("twice" in text for text in texts)
    page = (package / f"{member}.html").read_text(encoding="utf-8")
    assert "doubled" in page
    assert escape(json.loads(document)["title"], quote=False) in page
