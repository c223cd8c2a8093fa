"""The site: `make site` renders README, docs/, notebooks/ and the docstrings into build/site.

The source folder is the repository itself, so a link leads to the same file on a forge and on the
site. Four things are added while Sphinx reads a page, and none stands in the Markdown: the menu,
from the tables of docs/index.md, the docstrings of exported names, the words of the glossary, and
long tables that a command prints (`<!-- on the site: perfmodel ... -->`). The front page is the
explorer: what operators and networks take on all GPUs, predicted while the site is built.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import perfmodel
import perfmodel.triton
from perfmodel import glossary, hardware
from perfmodel.analysis.explorer import explored
from perfmodel.render.html.page import render
from perfmodel.render.html.results import Results

project = "perfmodel"
version = release = perfmodel.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "notebooks/*.ipynb"]
exclude_patterns = [".*", "build", "hardware_specs", "kernels", "perfmodel", "tests"]

myst_heading_anchors = 6  # levels of headings that get the anchor that forges give them
nb_execution_mode = "off"  # a notebook shows the outputs that it carries

autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "undoc-members": True,
    # Those of our own classes: a prediction has the numbers that one and many share.
    "inherited-members": "BaseException, Mapping, dict, tuple, str",
}
maximum_signature_line_length = 80
toc_object_entries = False
smartquotes = False
nitpicky = True
# Only exported names have to resolve: no inventories of Python and NumPy are downloaded.
nitpick_ignore_regex = [("py:.*", r"(?!perfmodel\.(triton\.)?\w+$).*")]

html_theme = "furo"
html_title = "perfmodel"
html_static_path = ["site/style.css"]
html_css_files = ["style.css"]
html_copy_source = False
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

RESULTS = [
    "algorithms.problem.Problem",
    "algorithms.algorithm.Algorithm",
    "elements.ElementType",
    "hardware.levels.Level",
    "timing.knowledge.Known",
    "operators.operator.Exchanged",
    "count.cost.KernelCost",
    "count.cost.Traffic",
    "napkin.explain.Explanation",
    "napkin.explain.KernelPage",
    "graph.live.Memory",
    "graph.live.Span",
    "graph.stretch.Stretch",
    "graph.declaration.DeclaredGraph",
    "analysis.whatif.WhatIf",
    "analysis.whatif.Change",
    "analysis.whatif.Effect",
    "analysis.whatif.Outcome",
    "analysis.sweep.runner.Written",
]
"""Classes that are not exported, but that exported functions return or exported classes hold."""

_GROUP = re.compile(r"^## (.+)\n", re.MULTILINE)
_ROW = re.compile(r"^\| \[([^\]]+)\]\((\S+?)\) \|", re.MULTILINE)
_NAME = re.compile(r"^### `(\w+)`\n", re.MULTILINE)
_PRINTED = re.compile(r"^<!-- on the site: perfmodel (.+) -->$", re.MULTILINE)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def menu(index: str) -> str:
    """The menu as hidden toctrees: a group for each heading, a page for each row of its table."""
    _, *parts = _GROUP.split(index)
    trees = []
    for group, table in zip(parts[::2], parts[1::2], strict=True):
        pages = "\n".join(f"{title} <{page}>" for title, page in _ROW.findall(table))
        trees.append(f"\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{pages}\n```\n")
    return "".join(trees)


def documented(module: ModuleType, name: str) -> str:
    """The directive that shows signature, types and docstrings of an exported name."""
    value = getattr(module, name)
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    return directive(kind, f"{module.__name__}.{name}")


def directive(kind: str, name: str) -> str:
    """A directive of autodoc, in MyST."""
    return f"\n```{{eval-rst}}\n.. auto{kind}:: {name}\n```\n"


def printed(arguments: str) -> str:
    """The output of a `perfmodel` command."""
    command = [sys.executable, "-m", "perfmodel", *arguments.split()]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def words() -> str:
    """The glossary as a list: a word, its other names, its meaning, the page that tells more."""

    def entry(word: glossary.Word) -> str:
        also = f" ({', '.join(f'`{name}`' for name in word.aliases)})" if word.aliases else ""
        more = f" [{word.page.partition('#')[0]}]({word.page})" if word.page else ""
        return f"- **{word.name}**{also}: {word.about}{more}\n"

    return "".join(map(entry, glossary.WORDS.values()))


def read(_: Sphinx, page: str, source: list[str]) -> None:
    """Add to a page what only the site shows."""
    source[0] = _PRINTED.sub(lambda found: printed(found[1]), source[0])
    (text,) = source
    if page == "docs/index":
        source[0] = text + menu(text)
    elif page == "docs/glossary":
        source[0] = text + words()
    elif page == "docs/api":
        text = _NAME.sub(lambda found: found[0] + documented(perfmodel, found[1]), text)
        classes = (directive("class", f"perfmodel.{name}") for name in RESULTS)
        source[0] = "\n".join((text, "## Classes that these return or hold", *classes))
    elif page == "docs/triton":
        names = (documented(perfmodel.triton, name) for name in perfmodel.triton.__all__)
        source[0] = "\n".join((text, "## Reference", *names))


def as_rst(_: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are Markdown whose only markup is `code`; autodoc reads reStructuredText."""
    lines[:] = _CODE.sub(r"``\1``\\ ", "\n".join(lines)).split("\n")


def front(app: Sphinx, failure: Exception | None) -> None:
    """Write the front page: the explorer, with the way to the documents."""
    if failure is not None:
        return
    devices = [hardware.load(name) for name in app.config.front_devices] or None
    grid = explored(devices, app.config.front_networks)
    links = {
        "What perfmodel is, set-up and first examples": "README.html",
        "Documentation": "docs/index.html",
    }
    text = render(Results(), title="perfmodel", command="make site", explorer=grid, links=links)
    Path(app.outdir, "index.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the hooks above to Sphinx."""
    app.add_config_value("front_devices", [], "", list)
    app.add_config_value("front_networks", ["llama-3-8b", "llama-3-70b", "gpt-oss-120b"], "", list)
    app.connect("build-finished", front)
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", as_rst)
