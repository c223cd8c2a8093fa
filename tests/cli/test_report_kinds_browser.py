"""Sections of every kind of result in a real browser: bars, dots, filters, tables, by key too.

Screenshots go to the folder in PERFMODEL_SCREENSHOTS, where that is set.
"""

import os
from pathlib import Path

import pytest
from browsertexts import overlapping
from reportresults import COMMANDS, EVIL, RUNS, document, evil, rows

from perfmodel.render.html import page as pages
from perfmodel.render.html import readers
from perfmodel.render.html.results import Results

pytestmark = pytest.mark.browser


def texts(page, selector):
    return page.locator(selector).all_text_contents()


@pytest.fixture(scope="module")
def written(report_results, tmp_path_factory):
    """A page of all kinds, the network twice."""
    found = Results()
    for name in ("networks", *COMMANDS):
        readers.read(str(report_results / f"{name}.json"), found)
    for name in RUNS:
        readers.read(str(report_results / f"rows-{name}.csv"), found)
    path = tmp_path_factory.mktemp("kinds") / "report.html"
    path.write_text(pages.render(found, title="All kinds", command="c"), encoding="utf-8")
    return path


@pytest.fixture
def opened(opening, written):
    def open_(width=1280, scheme="light"):
        page = opening(written, width, scheme)
        page.wait_for_selector("#scatter-collective .dots use[tabindex]")
        return page

    return open_


def section(page, title):
    return page.locator("section").filter(has=page.locator("h2", has_text=title)).first


def test_dots_are_rows_and_lengths_are_classes(opened, report_results):
    page = opened()
    for name in RUNS:
        count = len(rows(report_results / f"rows-{name}.csv"))
        assert page.locator(f"#scatter-{name} .dots use").count() == count
        assert page.locator(f"#scatter-{name} tbody tr").count() == count
    for title, name in (("Training steps", "steps"), ("Served networks", "loads")):
        there = section(page, title)
        count = len(document(report_results, name)[name])
        drawing = there.locator(".drawing:has(.axis ~ .dots), .drawing:has(.dots)").first
        assert drawing.locator(":is(.dots, .pale) use").count() == count
        assert there.locator("tbody tr").count() == count
    (one,) = document(report_results, "networks")["networks"]
    networks = section(page, "Networks")
    drawing = networks.locator(".drawing:not([hidden])")
    assert drawing.locator(".piece path").count() == 2 * len(one["by_class_us"])
    assert networks.locator("tbody tr").count() == min(2 * len(one["kernels"]) + 4, 200)


def test_a_length_says_its_time_and_share_by_mouse_and_by_key(opened):
    page = opened()
    lengths = section(page, "Networks").locator(".drawing:not([hidden]) .piece path")
    lengths.first.hover()
    said = page.locator("#tip").inner_text()
    for words in ("gpt2", "length", "share", "range"):
        assert words in said
    page.mouse.move(0, 0)
    assert page.locator("#tip").is_hidden()
    lengths.first.focus()
    page.keyboard.press("ArrowRight")
    walked = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert walked == lengths.nth(1).get_attribute("aria-label")
    assert page.locator("#tip").is_visible()
    drawing = section(page, "Networks").locator(".drawing:not([hidden])")
    assert drawing.locator('[tabindex="0"][data-row]').count() == 1


def test_a_network_s_bars_change_their_view(opened):
    page = opened()
    networks = section(page, "Networks")
    found = {}
    for view in ("layer", "kernel", "direction", "class"):
        networks.locator("select").first.select_option(label=view)
        found[view] = networks.locator(".drawing:not([hidden])").evaluate(
            "drawing => { const bars = {};"
            " for (const piece of drawing.querySelectorAll('.piece path')) {"
            " const box = piece.getBBox();"
            " bars[box.y] = Math.max(bars[box.y] ?? 0, box.x + box.width); }"
            " return Object.values(bars); }"
        )
    # The same network twice: bars of the same length, whatever they are made of.
    for view, ends in found.items():
        assert len(ends) == 2, view
        assert ends == pytest.approx([found["class"][0]] * 2, abs=2), view


def test_hovering_a_plan_and_a_load_says_their_numbers(opened):
    page = opened()
    for title, words in (
        ("Training steps", ("time of a step", " to ", "memory of the fullest device", "MFU")),
        ("Served networks", ("tokens/s/user", "output tokens/s/device", "TTFT", "limiter")),
        ("Predicted against measured: collectives", ("measured", "predicted / measured", " to ")),
    ):
        mark = section(page, title).locator(":is(.dots, .pale) use >> visible=true").first
        mark.hover(force=True)
        said = page.locator("#tip").inner_text()
        for word in words:
            assert word in said, title


def test_what_does_not_fit_is_pale_and_beyond_the_capacity(opened, report_results):
    page = opened()
    steps = document(report_results, "steps")["steps"]
    plans = section(page, "Training steps").locator(".drawing:not([hidden]):has(.dots)")
    edge = plans.locator(".limit path").bounding_box()
    for i, step in enumerate(steps):
        mark = plans.locator(f'{".dots" if step["fits"] else ".pale"} [data-row="{i}"]')
        box = mark.bounding_box()
        middle = box["x"] + box["width"] / 2
        assert (middle < edge["x"] + edge["width"] / 2) == step["fits"]


def test_axes_can_be_chosen_and_rows_filtered(opened):
    page = opened()
    loads = section(page, "Served networks")
    over = loads.locator("figure", has_text="Over the load")
    before = over.locator(".drawing:not([hidden])").inner_text()
    over.locator("[data-choice=up]").select_option(label="TTFT")
    assert over.locator(".drawing:not([hidden])").inner_text() != before
    runs = page.locator("#scatter-serving")
    runs.locator('[data-filter="device"]').select_option("h100-sxm")
    assert "of 6 runs" in runs.inner_text()
    assert runs.locator(".dots use:not([hidden])").count() == 3
    metric = page.locator("#scatter-training")
    shown = metric.locator(".drawing:not([hidden]) .axis").first
    assert " ms" in shown.text_content()
    metric.locator('[data-choice="metric"]').select_option(label="tokens_per_s_per_device")
    assert " ms" not in metric.locator(".drawing:not([hidden]) .axis").first.text_content()


def test_tables_sort_and_say_units_and_are_saved_whole(opened):
    page = opened()
    plans = section(page, "Training steps")
    head = plans.locator("th", has_text="time of a step")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert "In all rows: network gpt2" in plans.inner_text()
    column = [text.strip() for text in texts(plans, "thead th")].index("time of a step")
    cells = texts(plans, f"tbody tr td:nth-child({column + 1})")
    scale = {"ms": 1, "s": 1e3}
    times = [float(cell.split()[0]) * scale[cell.split()[1]] for cell in cells]
    assert times == sorted(times)
    with page.expect_download() as download:
        plans.get_by_role("button", name="CSV").click()
    header, *lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == len(cells)
    assert {"network", "step_us", "fits"} <= set(header.split(","))


def test_classes_of_a_network_are_on_the_roofline(opened):
    page = opened()
    dot = page.locator('#roofline .predicted[data-of="hbm"] [data-row] >> visible=true').last
    dot.hover(force=True)
    said = page.locator("#tip").inner_text()
    assert "gpt2: " in said
    assert "FLOP/byte at" in said
    assert page.locator("#cases tbody tr").count() == page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).tables.cases.rows.length"
    )


def test_everything_has_a_name_for_a_screen_reader(opened):
    page = opened()
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, input, select, svg[role], [role=img]')]"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length"
        " || e.closest('label'))).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.locator("main h2").count() == page.locator("nav a").count()
    assert page.locator("caption").count() == page.locator("table").count()
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light"), (1920, "dark")])
def test_no_labels_overlap_and_nothing_is_wider_than_the_page(opened, width, scheme):
    page = opened(width, scheme)
    if os.environ.get("PERFMODEL_SCREENSHOTS"):
        folder = Path(os.environ["PERFMODEL_SCREENSHOTS"])
        page.screenshot(path=folder / f"kinds-{width}-{scheme}.png", full_page=True)
    charts = page.evaluate(
        "() => { const all = document.querySelectorAll('.drawing:not([hidden])');"
        " all.forEach((chart, i) => { chart.dataset.number = i; }); return all.length; }"
    )
    assert charts > 15
    for i in range(charts):
        count, covered = overlapping(page, f'.drawing[data-number="{i}"] svg text')
        assert count > 0
        assert covered == [], i
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner


def test_markup_in_names_of_networks_and_engines_stays_text(opening, report_results, tmp_path):
    found = Results()
    for name in COMMANDS:
        readers.add(evil(document(report_results, name)), found, EVIL)
    path = tmp_path / "evil.html"
    path.write_text(pages.render(found, title=EVIL, command=EVIL), encoding="utf-8")
    page = opening(path)
    page.wait_for_selector(".piece path[tabindex]")
    page.locator(".piece path >> visible=true").first.hover()
    assert EVIL in page.locator("#tip").inner_text()
    page.locator(".dots use >> visible=true").first.hover(force=True)
    assert EVIL in page.locator("#tip").inner_text()
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
