"""The site: it builds without a warning, and whoever reads it meets no dead end.

What Sphinx does not check itself is read from the built pages: the menu, the API, links with their
anchors, what a page loads, and the pictures of the notebooks.
"""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from folders import ROOT

import perfmodel
import perfmodel.triton

INDEX = "docs/index.html"
API = {"docs/api.html": perfmodel, "docs/triton.html": perfmodel.triton}
LOADING = {"stylesheet", "icon", "preload", "prefetch", "manifest", "modulepreload"}
"""Kinds of <link> that a browser fetches by itself."""


@dataclass
class Page(HTMLParser):
    """What a page offers and asks for."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    """Where a reader can go."""
    loads: list[str] = field(default_factory=list)
    """What a browser fetches by itself."""
    menu: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
            if "reference internal" in found.get("class", "") and "#" not in found["href"]:
                self.menu.append(found["href"])
        if tag == "link" and LOADING & set(found.get("rel", "").split()):
            self.loads.append(found["href"])
        self.loads += [found[name] for name in ("src", "data", "poster") if found.get(name)]
        self.loads += [item.split()[0] for item in (found.get("srcset") or "").split(",") if item]

    def handle_data(self, data):
        self.text.append(data)


def parsed(folder):
    """Every page of a site by its path."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(folder).as_posix()] = page
    return pages


def foreign(address):
    """Whether an address is that of another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def dead(folder, pages):
    """Links and loads of pages that lead to no file, or to no anchor in it."""
    found = []
    for name, page in pages.items():
        for address in filter(lambda address: not foreign(address), page.links + page.loads):
            parts = urlsplit(address)
            target = urljoin(f"/{name}", unquote(parts.path)).removeprefix("/")
            if parts.scheme == "data":
                continue
            if target not in pages:
                alive = (folder / target).is_file()
            else:
                alive = unquote(parts.fragment) in {"", *pages[target].anchors}
            if not alive:
                found.append(f"{name}: {address}")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make site` builds it, in a folder of its own."""
    for package in ("sphinx", "myst_nb", "furo", "sphinx_copybutton"):
        pytest.importorskip(package, reason=f"{package} is not installed (perfmodel[docs])")
    folder = tmp_path_factory.mktemp("built").resolve() / "site"
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--conf-dir", "docs"]
    front = ["-D", "front_devices=h100-sxm,m4-max", "-D", "front_networks=llama-3-8b"]
    built = subprocess.run(
        [*command, *front, "--doctree-dir", str(folder.parent / "doctrees"), ".", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """The pages of the site."""
    return parsed(site)


def test_the_menu_has_every_document(pages):
    documents = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
    wanted = {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in documents}
    prefix = "https://site/"
    listed = [urljoin(f"{prefix}{INDEX}", link) for link in pages[INDEX].menu]
    assert {link.removeprefix(prefix) for link in listed} == wanted - {INDEX}
    assert pages.keys() >= wanted


@pytest.mark.parametrize("name", API)
def test_the_api_has_every_exported_name(pages, name):
    page, module = pages[name], API[name]
    text = " ".join(" ".join(page.text).split())
    for exported in module.__all__:
        value, whole = getattr(module, exported), f"{module.__name__}.{exported}"
        assert whole in page.anchors
        if callable(value):
            first = re.split(r"[`\n]", inspect.getdoc(value))[0]
            assert " ".join(first.split()) in text, whole
        if is_dataclass(value):
            shown = {f"{whole}.{item.name}" for item in fields(value) if item.name[0] != "_"}
            assert shown <= page.anchors
        elif inspect.isfunction(value):
            assert all(argument in text for argument in inspect.signature(value).parameters)


@pytest.mark.parametrize("name", API)
def test_docstrings_leave_no_markup_behind(site, name):
    """A docstring that is no valid markup is shown as it stands, with backticks, or as a quote."""
    html = (site / name).read_text(encoding="utf-8")
    described = re.findall(r"<dd>(.*?)</dd>", html, re.DOTALL)
    assert described
    assert not [text for text in described if re.search(r"`|<blockquote|problematic", text)]


def test_every_link_leads_somewhere(site, pages):
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert not dead(site, pages)


def test_nothing_comes_from_another_host(site, pages):
    assert not [load for page in pages.values() for load in page.loads if foreign(load)]
    sheets = list(site.rglob("*.css"))
    assert sheets
    for path in sheets:
        fetched = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", path.read_text("utf-8"))
        assert not list(filter(foreign, fetched)), path.name


def test_notebooks_show_the_pictures_that_they_carry(site, pages):
    carried = 0
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        pictures = sum("image/png" in output.get("data", ()) for output in outputs)
        loads = pages[f"notebooks/{path.stem}.html"].loads
        shown = {load for load in loads if load.endswith(".png")}
        assert len(shown) == pictures, path.name
        assert all((site / "notebooks" / load).stat().st_size > 1000 for load in shown)
        carried += pictures
    assert carried


@pytest.fixture
def opened(browser):
    """Opens a page without a network; at the end nothing but files of the site was asked for."""
    asked, contexts = [], []

    def open_(address, width):
        context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", ["README", "docs/api", "docs/accuracy", "docs/networks"])
def test_pages_do_not_scroll_sideways(site, opened, name, width):
    page = opened((site / f"{name}.html").as_uri(), width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")


@pytest.mark.browser
def test_a_line_of_output_fits(site, opened):
    """100 columns beside the menu and the contents, with nothing to scroll."""
    page = opened((site / "docs" / "commandline.html").as_uri(), 1400)
    spare = """() => {
        const block = document.querySelector("div.highlight-console pre");
        block.textContent = "x".repeat(100);
        return block.clientWidth - block.scrollWidth;
    }"""
    assert page.evaluate(spare) == 0


@pytest.mark.browser
def test_search_and_the_front_page_work_without_a_server(site, opened):
    page = opened(f"{(site / 'search.html').as_uri()}?q=occupancy", 1400)
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    assert any("docs/api.html#perfmodel.Prediction.occupancy" in link for link in found)
    page.goto((site / "index.html").as_uri())
    page.locator('[data-size="devices"]').fill("0")
    assert "1 of 2 devices; the fastest is h100-sxm" in page.inner_text("#explorer-result")
    page.get_by_text("What perfmodel is").click()
    page.wait_for_url("**/README.html")


def test_dead_ends_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="#top">1</a><a href="#gone">2</a><a href="b.html#there">3</a>'
        '<a href="b.html">4</a><a href="c.html">5</a><img src="d.png"><a href="https://x.org">6</a>'
    )
    (tmp_path / "b.html").write_text('<script src="//x.org/y.js"></script>')
    pages = parsed(tmp_path)
    expected = ["#gone", "b.html#there", "c.html", "d.png"]
    assert dead(tmp_path, pages) == [f"a.html: {address}" for address in expected]
    assert [foreign(load) for load in pages["b.html"].loads] == [True]
    assert not foreign("data:image/png;base64,AAAA")
    assert foreign("http://x.org/y.css")
