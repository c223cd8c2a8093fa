"""The page of results in a real browser, with no network: what is drawn, and what can be done.

Screenshots go to the folder in PERFMODEL_SCREENSHOTS, where that is set.
"""

import json
import os
from pathlib import Path

import pytest
from browsertexts import overlapping
from reportresults import EVIL

from perfmodel.hardware import load
from perfmodel.render.html import page as pages
from perfmodel.render.html import readers
from perfmodel.render.html.kind import Document
from perfmodel.render.html.results import Results, key_of

pytestmark = pytest.mark.browser


def predictions():
    """Attention on two devices in two schedules at three lengths, and a product in two types."""
    from perfmodel import Attention, Matmul, predict

    devices = [load(name) for name in ("h100-sxm", "a100-sxm4-80gb")]
    cases = [
        predict(Attention(1, 16, 16, n, n, 128, dtype="fp16"), device, schedule=schedule)
        for device in devices
        for schedule in ("standard", "tiled")
        for n in (512, 2048, 8192)
    ]
    cases += [predict(Matmul(64, 4096, 4096, dtype=t), devices[0]) for t in ("bf16", "fp8")]
    return [case.as_dict() for case in cases]


@pytest.fixture(scope="module")
def results():
    from perfmodel.analysis.sensitivities import sensitivities
    from perfmodel.table.records import published
    from perfmodel.validation.compare import predict_table

    found = Results()
    rows = predictions()
    readers.add({"predictions": rows}, found, "predictions.json")
    found.asked = [row for _, row in sensitivities(rows)]
    evil = {**rows[0], "device": EVIL, "schedule": EVIL, "assumptions": [EVIL]}
    readers.add({"predictions": [evil]}, found, EVIL)
    for row in predict_table(published().iloc[::6]).to_dict("records"):
        run = {key: None if value != value else value for key, value in row.items()}
        found.add_document("runs", Document("", [run]))
    found.add_table(EVIL, [{"name": EVIL, "time_us": 3.0}, {"name": "b", "time_us": 20.0}])
    return found


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    from perfmodel.analysis.explorer import explored

    path = tmp_path_factory.mktemp("page") / "report.html"
    explorer = explored([load(name) for name in ("h100-sxm", "mi300x", "l4")])
    text = pages.render(results, title=f"T {EVIL}", command=EVIL, explorer=explorer)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def opened(opening, written):
    """Opens the page and waits for its charts."""

    def open_(width=1280, scheme="light"):
        page = opening(written, width, scheme)
        page.wait_for_selector("#scatter .dots use[tabindex]")
        page.wait_for_selector("#explorer-chart .curves")
        return page

    return open_


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def test_dots_are_rows(opened, results):
    page = opened()
    for device in ("h100-sxm", "a100-sxm4-80gb"):
        page.select_option("#roofline [data-choice=device]", label=device)
        mine = [case for case in results.cases if case["device"] == device]
        for level in ("hbm", "l2", "shared"):
            there = f'#roofline .predicted[data-of="{level}"] [data-row]'
            assert page.locator(f"{there} >> visible=true").count() == len(mine)
    runs = [run for run in results.runs if run["predicted_us"]]
    assert page.locator("#scatter .dots use").count() == len(runs)
    assert page.locator("#cases tbody tr").count() == len(results.cases)


def test_hovering_a_mark_says_its_numbers_and_choosing_it_shows_its_terms(opened, results):
    page = opened()
    dot = page.locator('#roofline .predicted[data-of="hbm"] [data-row="5"]')
    dot.hover(force=True)
    said = page.locator("#tip").inner_text()
    for words in ("time", " to ", "rate", "share of its roof", "joined", "FLOP/byte at HBM3",
                  "limiter"):  # fmt: skip
        assert words in said
    dot.click(force=True)
    assert page.locator("#case").input_value() == "5"
    rows = dict(zip(texts(page, "#terms th"), texts(page, "#terms td.number"), strict=True))
    assert "matrix, the limiter" in rows
    assert f": {rows['= time']}, range" in page.locator("#terms p").first.inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_the_waterfall_adds_up(opened, results):
    page = opened()
    for i, case in enumerate(results.cases[:12]):
        page.select_option("#case", str(i))
        bars = page.evaluate(
            "() => [...document.querySelectorAll('#terms tbody tr')].map(row => {"
            " const bar = row.querySelector('.bar i').style;"
            " return [row.cells[0].textContent, parseFloat(bar.marginLeft), parseFloat(bar.width),"
            " bar.background]; })"
        )
        *_, total = bars
        assert total[0] == "= time"
        added = [bar for bar in bars if bar[3][6:-1] in ("ochre", "grey", "vermilion")]
        # Each added bar begins where the one before it ends, and the last where the time ends.
        ends = sorted(x + width for _, x, width, _ in added)
        assert ends[-1] == pytest.approx(total[2], rel=0.02), case["schedule"]


def test_levels_can_be_hidden_and_cases_filtered(opened):
    page = opened()
    marks = page.locator("#roofline .predicted [data-row] >> visible=true")
    before = marks.count()
    level = page.locator('#roofline input[value="l2"]')
    level.uncheck()
    assert marks.count() == before * 2 // 3
    assert page.locator('#roofline [data-of="l2"] >> visible=true').count() == 0
    level.check()
    page.locator('#roofline [data-filter="schedule"]').select_option("standard")
    assert marks.count() == 3 * 3
    assert "3 of 15 rows" in page.locator("#roofline").inner_text()
    page.select_option("#roofline [data-choice=device]", label="a100-sxm4-80gb")
    assert "1.77 T" in page.locator("#roofline .drawing:not([hidden])").inner_text()
    assert page.locator('#roofline .peak[data-of="hbm"] >> visible=true').count() == 1


def test_tables_sort_and_filter_and_are_saved_as_csv(opened, results):
    page = opened()
    head = page.locator("#cases th", has_text="time").first
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    column = [text.strip() for text in texts(page, "#cases thead th")].index("time")
    cells = texts(page, f"#cases tbody tr td:nth-child({column + 1})")
    units = {"µs": 1, "ms": 1e3}
    times = [float(cell.split()[0]) * units[cell.split()[1]] for cell in cells]
    assert times == sorted(times)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    page.locator("#cases input").fill("a100 tiled")
    assert page.locator("#cases tbody tr").count() == 3
    with page.expect_download() as download:
        page.locator("#cases .controls button", has_text="CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 1 + 3
    assert lines[0].startswith("device,operator,schedule")
    with page.expect_download() as download:
        page.locator("#download-json").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert len(saved["tables"]["cases"]["rows"]) == len(results.cases)


def test_sliders_tell_what_the_model_says_for_half_and_twice(opened, results):
    page = opened()
    case = results.cases[0]
    halved, doubled = results.effects[key_of(case)]["hbm_bandwidth"]
    slider = page.locator('#whatif input[data-quantity="hbm_bandwidth"]')
    for end, wanted in (("1", doubled), ("-1", halved)):
        slider.fill(end)
        said = page.locator("#whatif-result").inner_text()
        told = said.split("→")[1].split()[:2]
        scale = {"µs.": 1.0, "ms.": 1e3}[told[1]]
        assert float(told[0]) * scale == pytest.approx(wanted, rel=6e-3)
    assert "×0.50" in page.locator("#whatif label").first.inner_text()
    page.locator("#whatif button").click()
    assert "×1.00 in the median" in page.locator("#whatif-result").inner_text()
    assert slider.input_value() == "0"


def test_sliders_move_roofs_and_marks(opened):
    page = opened()
    mark = page.locator('#roofline .predicted[data-of="hbm"] [data-row="3"]')
    roof = page.locator("#roofline .level[data-of=hbm] >> visible=true")
    before = mark.bounding_box(), roof.bounding_box()
    page.locator('#whatif input[data-quantity="hbm_bandwidth"]').fill("1")
    after = mark.bounding_box(), roof.bounding_box()
    assert after[0]["y"] < before[0]["y"]  # faster
    assert after[1]["x"] < before[1]["x"]  # the ridge point is further left


def test_runs_are_filtered(opened, results):
    page = opened()
    page.locator('#scatter [data-filter="device"]').select_option("h100-sxm")
    mine = [run for run in results.runs if run["device"] == "h100-sxm" and run["predicted_us"]]
    assert page.locator("#scatter .dots use:not([hidden])").count() == len(mine)
    assert f"{len(mine)} of {len(results.runs)} runs" in page.locator("#scatter").inner_text()


def test_provenance_stands_beside_each_number(opened):
    page = opened()
    page.locator("#devices input").fill("h100-sxm memory bandwidth")
    lines = page.locator("#devices tbody tr").all_inner_texts()
    first = next(line for line in lines if "as the device reports it" in line)
    assert "3.352 TB/s" in first
    assert "http" in first
    evil = page.evaluate("document.querySelector('#devices img')")
    assert evil is None


def test_marks_are_walked_with_the_keyboard(opened):
    page = opened()
    marks = page.locator("#roofline .drawing:not([hidden]) [data-row]")
    page.locator('#roofline .drawing:not([hidden]) [tabindex="0"]').focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert marks.count() > 10
    assert first
    assert second
    assert page.locator("#tip").is_visible()
    assert page.locator('#roofline .drawing:not([hidden]) [tabindex="0"]').count() == 1
    case = page.evaluate("document.activeElement.dataset.row")
    page.keyboard.press("Enter")
    assert page.locator("#case").input_value() == case


def test_everything_has_a_name_for_a_screen_reader(opened):
    page = opened()
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, input, select, [role=group], [role=img]')]"
        ".concat([...document.querySelectorAll('[role=button]')]).filter(e =>"
        " !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length"
        " || e.closest('label'))).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.locator("main h2").count() == page.locator("nav a").count()
    assert page.locator("caption").count() == page.locator("table").count()
    assert page.evaluate("document.documentElement.lang") == "en"


def test_a_script_in_a_name_stays_text(opened):
    page = opened()
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert EVIL in page.title()
    assert EVIL in page.locator("#command").inner_text()
    assert any(EVIL in text for text in texts(page, "#cases td"))


def test_the_explorer_follows_its_sliders(opened):
    page = opened()
    assert page.locator("#explorer tbody tr").count() == 3
    page.locator('[data-size="m"]').fill("0")
    small = page.locator("#explorer-result").inner_text()
    page.locator('[data-size="m"]').fill("13")
    assert page.locator("#explorer-result").inner_text() != small
    curves = page.locator("#explorer-chart .drawing:not([hidden]) .curves")
    assert curves.locator("g").count() == 3
    inside = curves.evaluate(
        "curves => [...curves.querySelectorAll('use')].every(use => {"
        " const panel = curves.parentNode.querySelector('.grid').getBBox();"
        " return use.x.baseVal.value > panel.x - 1"
        " && use.x.baseVal.value < panel.x + panel.width + 30; })"
    )
    assert inside
    page.locator("#explorer-search").fill("mi3")
    assert page.locator("#explorer tbody tr").count() == 1
    page.select_option("#explorer-operator", "2")
    assert "mi300x" in page.locator("#explorer-result").inner_text()
    assert page.locator("#explorer .sliders input").count() == 2


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1920, "dark")])
def test_no_labels_overlap_and_nothing_is_wider_than_the_page(opened, width, scheme):
    page = opened(width, scheme)
    if os.environ.get("PERFMODEL_SCREENSHOTS"):
        folder = Path(os.environ["PERFMODEL_SCREENSHOTS"])
        page.screenshot(path=folder / f"report-{width}-{scheme}.png", full_page=True)
    for device in ("h100-sxm", "a100-sxm4-80gb"):
        page.select_option("#roofline [data-choice=device]", label=device)
        names = "#roofline .drawing:not([hidden]) :is(.name, .foot) text"
        count, overlapped = overlapping(page, names)
        assert count >= 5
        assert overlapped == []
    for chart in ("#roofline", "#scatter"):
        assert overlapping(page, f"{chart} .drawing:not([hidden]) .axis text")[1] == []
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if scheme == "dark" else "rgb(255, 255, 255)")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground


def test_two_thousand_rows_are_usable_at_once(browser, tmp_path):
    found = Results()
    row = predictions()[0]
    rows = [{**row, "problem": {**row["problem"], "batch": i + 1}} for i in range(2000)]
    found.add_document("predictions", Document("x", rows))
    path = tmp_path / "many.html"
    path.write_text(pages.render(found, title="many", command="c"), encoding="utf-8")
    page = browser.new_context(offline=True).new_page()
    page.goto(path.as_uri())
    assert page.locator("#cases tbody tr").count() == 200
    page.locator("#cases .more").click()
    assert page.locator("#cases tbody tr").count() == 2000
    assert page.locator("#roofline .predicted [data-row]").count() == 6000
    page.context.close()
