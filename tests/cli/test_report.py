"""The page of results: what it reads, what it says, and that nothing of the data is markup."""

import base64
import csv
import hashlib
import html
import itertools
import json
import re

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from perfmodel import Attention, predict, predict_arrays
from perfmodel.analysis.explorer import OPERATORS, explored
from perfmodel.analysis.sensitivities import sensitivities
from perfmodel.analysis.whatif import whatif
from perfmodel.errors import ProblemError, TableError
from perfmodel.hardware import load
from perfmodel.networks.library import load as load_network
from perfmodel.render.html import page, readers
from perfmodel.render.html.kind import Document
from perfmodel.render.html.results import MOST, Results
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps

H100 = load("h100-sxm")
CASE = Attention(1, 16, 16, 2048, 2048, 128, dtype="fp16")


def prediction(**changes):
    return {**predict(CASE, H100).as_dict(), **changes}


def rendered(*documents, explorer=None):
    results = Results()
    for document in documents:
        readers.add(document, results, "x.json")
    return page.render(results, title="T", command="c", explorer=explorer)


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_csv_with_a_line_end_inside_a_cell_is_one_line(cli, tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a,b\n1,x\ry\n" + b'"' + b"z" * 200_000)
    code, _, err = cli("report", str(tmp_path / "x.csv"), "-o", str(tmp_path / "r.html"))
    assert (code, err.count("\n")) == (2, 1)
    assert "x.csv: not CSV" in err


@pytest.mark.parametrize("lines", [1, True, {"a": 1}, [1], [["x"]]])
def test_assumptions_are_a_list_of_texts(lines):
    with pytest.raises(TableError, match=r"x\.json: predictions .*: assumptions: no list of texts"):
        rendered({"predictions": [prediction(assumptions=lines)]})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner.filter(lambda x: x is not None))
    ),
    max_leaves=8,
)  # fmt: skip


@given(json_values)
def test_data_hold_no_markup_and_come_back(value):
    text = page.as_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


@given(st.floats())
def test_numbers_keep_six_digits_and_never_break_json(value):
    found = json.loads(page.as_json(value))
    if value != value or abs(value) == float("inf"):
        assert found is None
    else:
        assert found == pytest.approx(value, rel=1e-5, abs=0)


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_a_name_with_markup_stays_text():
    text = rendered({"predictions": [prediction(device=EVIL, assumptions=[EVIL])]})
    assert text.count("<script") == 2  # the data and our own
    assert "<img" not in text
    (row,) = data_of(text)["tables"]["cases"]["rows"]
    assert row[0] == EVIL
    results = Results()
    titled = page.render(results, title=EVIL, command=EVIL)
    assert titled.count("<script") == 2
    assert html.escape(EVIL) in titled


def test_the_policy_names_the_hashes_of_what_stands_there():
    text = rendered({"predictions": [prediction()]})
    policy = html.unescape(re.search(r'Security-Policy" content="(.*?)"', text)[1])
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    shown = re.sub(r'data-tip="[^"]*"', "", text.split('id="data"')[0])  # names of sources
    assert not re.search(r"\bsrc=|url\((?!#)|https?://(?!www\.w3\.org)", shown)


def test_the_page_is_the_same_bytes_every_time_and_small():
    documents = {"predictions": [prediction()]}
    assert rendered(documents) == rendered(documents)
    assert len(rendered().encode()) < 100_000  # scripts and styles
    script = rendered().split("<script>")[1]
    assert "innerHTML" not in script
    assert "eval" not in script.replace("evaluate", "")


def test_predictions_in_csv_are_those_in_json(cli):
    options = ("predict", "attention", "-d", "h100-sxm", "--seq", "1k,2k", "--causal")
    assert cli(*options, "-o", "x.json")[0] == cli(*options, "-o", "x.csv")[0] == 0
    one, other = Results(), Results()
    readers.read("x.json", one)
    readers.read("x.csv", other)
    assert len(one.cases) == len(other.cases) == 2
    for a, b in zip(one.cases, other.cases, strict=True):
        assert b["time_us"] == a["time_us"]
        for name in ("problem", "terms_us", "bytes", "levels", "known"):
            assert b[name] == a[name]


def test_every_kind_of_result_is_read(cli, output):
    calls = {
        "graph.json": ("graph", "decoder-layer", "-d", "h100-sxm", "-s", "seq=128"),
        "graph.csv": ("graph", "decoder-layer", "-d", "h100-sxm", "-s", "seq=128"),
        "whatif.json": ("whatif", "gemm", "-d", "h100-sxm", "-m", "64"),
    }
    results = Results()
    for name, call in calls.items():
        assert cli(*call, "-o", name)[0] == 0
        readers.read(name, results)
    assert [table.title for table in results.tables] == ["graph.csv"]
    (graphs,) = results.sections(late=False)
    nodes, whole = graphs.rows[:-1], graphs.rows[-1]
    assert sum(row["time_us"] for row in nodes) == pytest.approx(whole["time_us"])
    assert {"operator", "kernel"} == graphs.charts[0].keys()
    assert [each.title for each in results.sections(late=True)] == ["What-ifs"]
    assert results.cases[0]["label"] == "decoder-layer: qkv"
    assert "decoder-layer on h100-sxm: harness=kernel batch=1 seq=128" in " ".join(graphs.sentences)
    halved, doubled = results.effects[results.cases[-1]["key"]]["clock"]
    assert halved > results.cases[-1]["time_us"] > doubled
    out = output("sweep", "gemm", "-d", "h100-sxm", "-m", "64,4k", "--best", "-f", "json")
    readers.add(json.loads(out), results, "sweep")
    (point,) = (case for case in results.cases if case["source"] == "sweep")
    assert (point["algorithm"], point["bytes"]["hbm"] > 1) == ("gemm", True)


def test_runs_of_a_comparison_keep_every_row(cli, tmp_path):
    from perfmodel.table.records import published, write_table
    from perfmodel.validation.compare import predict_table

    table = predict_table(published().head(20))
    write_table(table, str(tmp_path / "rows.csv"))
    results = Results()
    readers.read(str(tmp_path / "rows.csv"), results)
    assert [run["measured_us"] for run in results.runs] == list(table["measured_us"])
    said = page.contents(results).sentences
    assert said[0].startswith("20 measured runs: predictions are off by ")


def test_an_unknown_document_is_a_table():
    results = Results()
    readers.add({"requests": [{"ttft_us": 5.0, "model": "m"}]}, results, "new.json")
    (table,) = results.tables
    assert [(c.header, c.kind) for c in table.columns] == [("TTFT", "time"), ("model", "text")]


@cases
def test_bad_files_are_one_line(cli, tmp_path, name, text, said):
    (tmp_path / name).write_text(text, encoding="latin-1")
    refused(cli("report", name, "-o", "r.html"), said)
    assert not (tmp_path / "r.html").exists()


def test_the_command_refuses_in_one_line(cli):
    assert "nothing to show" in cli("report")[2]
    assert "cannot read none.json: no such file" in cli("report", "none.json")[2]
    assert "r.pdf: a page is written as .html" in cli("report", "x.json", "-o", "r.pdf")[2]


def test_a_page_holds_so_many_cases():
    results = Results()
    results.add_document("predictions", Document("x", [{}] * MOST))
    with pytest.raises(ProblemError, match=r"5,000 rows of predictions at most"):
        results.add_document("predictions", Document("x", [{}]))
    with pytest.raises(TableError):
        readers.add({}, results, "x")


def test_what_is_asked_again_is_the_what_if_itself():
    rows = [prediction(), {**prediction(), "time_us": 1.0}]  # the second was timed otherwise
    found = [(i, row) for i, row in sensitivities(rows) if row["quantity"]]
    assert {i for i, _ in found} == {0}
    direct = {row["quantity"]: row for row in whatif(CASE, H100).rows()}
    for _, row in found:
        wanted = direct[row["quantity"]]
        assert row["halved_us"] == pytest.approx(wanted["halved_us"])
        assert row["after_us"] == pytest.approx(wanted["after_us"])


def numbers(text):
    return [float(word) if word else None for word in text.split(",")]


def test_the_explorer_has_the_model_s_own_times():
    found = explored([H100, load("p4")])
    assert found["devices"] == ["h100-sxm", "p4"]
    for question, answer in zip(OPERATORS, found["operators"], strict=True):
        lengths = [len(size["values"]) for size in answer["sizes"]]
        assert len(numbers(answer["useful"])) == lengths[0] * lengths[1]
        assert list(answer["times"]) == ["0"]  # a P4 has no matrix unit
        i, j = lengths[0] - 1, 1
        sizes = [size["values"][k] for size, k in zip(answer["sizes"], (i, j), strict=True)]
        one = predict_arrays(question.make(*sizes, dtype="bf16"), H100).one(0)
        told = answer["times"]["0"]
        place = i * lengths[1] + j
        assert numbers(told["us"])[place] == pytest.approx(one.seconds * 1e6, rel=5e-3)
        limiter = found["limiters"][told["limiter"][place]]
        assert limiter == one.levels.get(one.limiter, one.limiter)


def test_the_explorer_has_networks_as_they_are_served():
    """Times are those of `infer`; a batch that does not fit has none."""
    found = explored([load("a100-sxm4-80gb")], ["llama-3-70b"])
    answer = found["operators"][0]
    values = {size["name"]: size["values"] for size in answer["sizes"]}
    places = list(itertools.product(*values.values()))
    told = answer["times"]["0"]
    times = dict(zip(places, numbers(told["us"]), strict=True))
    case = (1024, 16, 4, "bf16")
    deployment = Deployment(load_network("llama-3-70b"), load("a100-sxm4-80gb"), tensor=4)
    (one,) = serve(Steps(deployment), "static batch", [16], 1024, 256)
    assert times[case] == pytest.approx(one.tpot_seconds * 1e6, rel=5e-3)
    first = numbers(told["first"])[places.index(case)]
    assert first == pytest.approx(one.ttft_seconds, rel=5e-3)
    assert 30 < numbers(told["mfu"])[places.index(case)] < 100
    assert times[1024, 1, 1, "bf16"] is None  # 141 GB of weights on 80 GB
    assert times[1024, 1, 1, "int4-g128"]
    assert times[1024, 1, 1, "fp8"] > times[1024, 1, 1, "int4-g128"]  # 8 bits, widened
    low, high = told["range"]
    assert low < 1 < high


def test_latex_tables_balance_and_escape(cli, output):
    out = output("predict", "gemm", "-d", "h100-sxm", "-m", "1:64:x8", "--format", "latex")
    body = out[out.index("\\midrule") : out.index("\\bottomrule")].splitlines()[1:]
    header = out[out.index("\\toprule") : out.index("\\midrule")].splitlines()[1]
    columns = re.search(r"begin\{tabular\}\{(\w+)\}", out)[1]
    counts = {line.replace("\\&", "").count("&") + 1 for line in (header, *body)}
    assert counts == {len(columns)}
    assert len(body) == 3
    assert out.count("{") == out.count("}")
    assert not re.search(r"(?<!\\)[%#$_]", re.sub(r"\\label\{.*\}", "", out))
    assert cli("hardware", "list", "-o", "x.tex")[0] == 0


def test_notebooks_show_tables_of_text(monkeypatch):
    one = predict(CASE, H100)
    shown = one._repr_html_()
    assert "HBM3 time" in shown
    assert len(shown) < 5000
    object.__setattr__(one, "device", EVIL)
    assert "<script" not in one._repr_html_()
    many = predict_arrays(CASE.having(batch=list_of(30)), H100)._repr_html_()
    assert "and 10 more" in many
    assert many.count("<tr>") == 21
    assert "config" in H100._repr_html_()


def list_of(count):
    import numpy as np

    return np.arange(1, count + 1)


def test_csv_text_stays_text():
    results = Results()
    row = {"device": "'=1+1", "measured_us": "5", "predicted_us": "6.0", "causal": "False"}
    lines = [",".join(row), ",".join(row.values())]
    readers._csv("\n".join(lines), results, "x")
    assert results.runs == [
        {"device": "=1+1", "measured_us": 5, "predicted_us": 6.0, "causal": False}
    ]
    assert list(csv.reader(lines))[1][0] == "'=1+1"
