"""Shared configuration: Hypothesis profiles, skips by marker, and the measured data."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
# Helpers beside the tests (walker.py) import by plain name under --import-mode=importlib.
sys.path.insert(0, str(HERE))

settings.register_profile(
    "perfmodel",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
# The first of the same examples, and as many cases of each test: `make quick`.
settings.register_profile("quick", settings.get_profile("perfmodel"), max_examples=5)
# Mutants are looked for with more of the same examples.
settings.register_profile("thorough", settings.get_profile("perfmodel"), max_examples=200)
# pytest --hypothesis-profile deep: other examples in every run, and many more of them.
settings.register_profile(
    "deep", settings.get_profile("perfmodel"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile("perfmodel")

# As many processes run the tests as there are cores. Threads of OpenMP beside them would wait for
# each other by spinning: tests that train trees take twice as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests time NumPy's model and write no code into the user's cache, except those of compiled code.
os.environ.setdefault("PERFMODEL_COMPILED", "off")

# The cheap sign of a GPU, asked before anything imports torch or triton: triton reads its
# interpreter switch when it is first imported.
_DRIVER = any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/kfd"))
if not (_DRIVER or shutil.which("nvidia-smi")):
    os.environ.setdefault("TRITON_INTERPRET", "1")


def _gpu_missing() -> str | None:
    """Why GPU tests cannot run here, or None where they can."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return None if torch.cuda.is_available() else "torch finds no CUDA or ROCm device"


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _browser_missing() -> str | None:
    """Why browser tests cannot run here, or None where they can."""
    from importlib.util import find_spec

    if find_spec("playwright") is None:
        return "playwright is not installed"
    if not any(map(shutil.which, BROWSERS)):
        return f"no browser on the path: none of {', '.join(BROWSERS)}"
    return None


def _gpu_there() -> str | None:
    """Why tests of the interpreter cannot run here, or None where they can."""
    return None if _gpu_missing() else "there is a GPU, and the interpreter is for machines without"


MISSING = {"gpu": _gpu_missing, "no_gpu": _gpu_there, "browser": _browser_missing}


def _few(items: list[pytest.Item], most: int) -> set[pytest.Item]:
    """So many cases of each test at most, evenly spread over all of them."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    counts = {name: min(most, len(cases)) for name, cases in tests.items()}
    return {
        tests[name][i * len(tests[name]) // count]
        for name, count in counts.items()
        for i in range(count)
    }


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, in this one place; torch is imported only if asked for."""
    if config.getoption("--hypothesis-profile", None) == "quick":
        kept = _few(items, settings().max_examples)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for marker, missing in MISSING.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = missing() if marked else None
        if reason:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of every later collection of garbage, which
    would go through all modules and tests again and again."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--no-skips`, for the machine that has all that the tests need: `make test-all`."""
    parser.addoption("--no-skips", action="store_true", help="A test that is skipped has failed.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With --no-skips, what skips a test fails it; no machine has a GPU and lacks one."""
    report = yield
    if not any(map(item.get_closest_marker, ("gpu", "no_gpu"))):
        _fail_if_skipped(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """With --no-skips, what skips a whole module fails it."""
    report = yield
    _fail_if_skipped(report, collector.config)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config):
    if report.skipped and config.getoption("no_skips") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"not run (--no-skips): {reason}"


@pytest.fixture(autouse=True)
def _most_draws_are_predicted() -> Iterator[None]:
    """No law holds because the model refused what it was asked."""
    draws = sys.modules.get("draws")
    if draws:
        draws.DRAWS.clear()
    yield
    if draws:
        draws.DRAWS.check()


@pytest.fixture(scope="session")
def measured() -> Path:
    """The folder of measured runs; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("PERFMODEL_DATA", HERE.parent.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no measured runs at {folder}; set PERFMODEL_DATA to their folder")
    return folder


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Runs a perfmodel command in an empty folder: (exit code, stdout, stderr)."""
    from perfmodel.cli import run

    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = run([str(item) for item in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def output(cli):
    """Standard output of a command that has to succeed."""

    def call(*arguments):
        code, out, err = cli(*arguments)
        assert code == 0, err
        return out

    return call


@pytest.fixture(scope="session")
def report_results(tmp_path_factory):
    """A folder with a result of every kind, as files that the commands wrote."""
    import reportresults

    return reportresults.write(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """This machine's Chromium, for tests marked `browser`."""
    from playwright.sync_api import sync_playwright

    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opening(browser):
    """Opens pages; at the end nothing was logged, and nothing but the pages was asked for."""
    faults, requests, contexts, wanted = [], [], [], []

    def open_(path, width=1280, scheme="light"):
        context = browser.new_context(
            offline=True, viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        wanted.append(path.as_uri())
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []
    assert [url for url in requests if not url.startswith("blob:")] == wanted
