"""`perfmodel collective` and `compare --kind collective` as a user runs them."""

import csv
import io
import json

import pandas as pd
import pytest
from cases import cases
from refusing import refused

ROW = {
    "row": 1, "source": "own", "device": "h100-sxm", "topology": "switch", "library": "nccl",
    "collective": "all-reduce", "dtype": "fp16", "ranks": 8, "ranks_per_node": 8,
    "bytes": 2**20, "latency_us": 27.0, "flag": "",
}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    def write(*rows):
        path = tmp_path / "collectives.csv"
        pd.DataFrame([{**ROW, "row": i + 1, **row} for i, row in enumerate(rows)]).to_csv(
            path, index=False
        )
        return path

    return write


def test_json_has_every_case_with_what_is_known(cli):
    code, out, err = cli(
        *("collective", "all-reduce", "--system", "dgx-h100", "--bytes", "1k:1G:x4"),
        *("--ranks", "8,64", "-f", "json"),
    )
    found = json.loads(out)["collectives"]
    assert (code, err, len(found)) == (0, "", 22)
    assert [row["problem"]["ranks"] for row in found] == [8] * 11 + [64] * 11
    first = found[0]
    assert first["known"] == {"device": "fitted", "library": "fitted", "link": "fitted"}
    assert first["time_us"] == pytest.approx(sum(first["terms_us"].values()))
    assert first["bus_gb_per_s"] == pytest.approx(1024 * 1.75 / first["time_us"] / 1e3)


def test_every_format_and_several_systems(cli, tmp_path):
    asked = ("collective", "all-gather", "-s", "dgx-h100,dgx-b200", "-s", "a40", "-b", "1M,64M")
    table = cli(*asked, "--terms")[1]
    assert all(word in table for word in ("dgx-b200", "a40", "start", "hops", "limiter", "sent"))
    rows = list(csv.DictReader(io.StringIO(cli(*asked, "-f", "csv")[1])))
    assert len(rows) == 6
    assert {"problem_bytes", "terms_us_hops", "known_device"} <= set(rows[0])
    assert cli(*asked, "-o", tmp_path / "x.md")[2] == f"wrote {tmp_path / 'x.md'}\n"
    assert "| system |" in (tmp_path / "x.md").read_text()


def test_every_collective_is_a_command(output):
    from perfmodel.collectives import OPS

    for op in OPS:
        out = output("collective", op, "-s", "dgx-h100", "-f", "json")
        assert {row["collective"] for row in json.loads(out)["collectives"]} == {op}


def test_the_wall_is_a_table(cli):
    code, out, _ = cli("collective", "wall", "-s", "dgx-h100", "--hidden", "8k", "-f", "json")
    found = {(r["link"], r["parallelism"]): r for r in json.loads(out)["ridges"]}
    assert code == 0
    assert found["nvlink", "tensor"]["threshold"] == 17
    assert found["network", "expert"]["bound"] == "at least"


def test_compare_gives_every_row_back_or_says_why_not(cli, runs, tmp_path):
    path = runs(
        {}, {"device": "abacus"}, {"collective": "gossip"}, {"ranks": 12}, {"flag": "odd"},
        {"ranks": 1, "ranks_per_node": 1},
    )  # fmt: skip
    out_path = tmp_path / "rows.csv"
    code, out, err = cli("compare", path, "--kind", "collective", "--by", "device", "-o", out_path)
    assert (code, err) == (0, f"wrote {out_path}\n")
    found = pd.read_csv(out_path, keep_default_na=False)
    assert list(found["row"]) == [1, 2, 3, 4, 5, 6]
    assert float(found["low"][0]) < float(found["predicted"][0]) < float(found["high"][0])
    reasons = list(found["reason"])
    assert reasons[0] == reasons[4] == ""
    assert "no device named 'abacus'" in reasons[1]
    assert "no collective named 'gossip'" in reasons[2]
    assert "12 ranks" in reasons[3]
    assert "one rank alone" in reasons[5]
    assert "3 rows" not in out
    assert "1 rows not predicted: no device named 'abacus'" in out


def test_compare_takes_the_link_that_a_row_names(cli, runs, tmp_path):
    path = runs(
        {"device": "a100-pcie-80gb", "topology": "pcie", "ranks": 2, "ranks_per_node": 2},
        {"device": "a100-pcie-80gb", "topology": "pairs", "ranks": 2, "ranks_per_node": 2},
        {"device": "mi300x", "topology": "switch", "library": "rccl"},
        {"device": "l40s", "topology": "pcie", "library": ""},
        {"device": "gb200", "topology": ""},
        {"device": "rtx4090", "topology": "pcie"},
    )
    out_path = tmp_path / "rows.csv"
    assert cli("compare", path, "--kind", "collective", "-o", out_path)[0] == 0
    found = pd.read_csv(out_path, keep_default_na=False)
    assert (found["reason"] == "").all(), list(found["reason"])
    assert float(found["predicted"][0]) > float(found["predicted"][1])
    assert "library 'rccl' is not known: nccl taken" in found["assumed"][2]
    assert list(found["known_link"]) == ["unseen", "fitted", "unseen", "unseen", "fitted", "unseen"]


@cases
def test_a_damaged_table_is_one_line(cli, runs, change, says):
    assert says in refused(cli("compare", runs(change), "--kind", "collective"))


def test_missing_columns_are_all_named(cli, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("device,bytes\nh100-sxm,1\n")
    said = refused(cli("compare", path, "--kind", "collective"))
    for column in ("collective (or", "ranks (or", "latency_us (or"):
        assert column in said


def test_explain_is_of_operators(cli, runs):
    asked = ("compare", runs({}), "--kind", "collective", "--explain")
    assert "--explain does not work for collective tables" in refused(cli(*asked))


def test_the_chart_and_the_gate_take_collectives(cli, runs, tmp_path):
    path = tmp_path / "x.svg"
    code, *_ = cli("compare", runs({}), "--kind", "collective", "--chart", path)
    assert code == 0
    assert path.read_text().startswith("<?xml")
    assert cli("compare", runs({}), "--kind", "collective", "--max-error", "1%")[0] == 1
