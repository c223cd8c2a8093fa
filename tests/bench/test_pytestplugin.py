"""The plugin of pytest: off without a GPU, free where it is not used, and true where it is."""

import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest

from perfmodel import Matmul, load, predict, pytestplugin

pytest_plugins = ["pytester"]

# Where the package is installed with its entry points, pytest finds the plugin itself.
FOUND = any(point.name == "perfmodel" for point in entry_points(group="pytest11"))
PLUGIN = [] if FOUND else ["-p", "perfmodel.pytestplugin"]

PRODUCT = Matmul(4096, 4096, 4096)
EXPECTED = predict(PRODUCT, load("h100-sxm"), harness="do_bench")
MARKED = """
import pytest
from perfmodel import Matmul, pytestplugin

pytestplugin.device_here = lambda: {here!r}
pytestplugin.seconds_of = lambda call: (call(), {seconds})[1]

@pytest.fixture
def operand():
    return 2

@pytest.mark.perfmodel(Matmul(4096, 4096, 4096), "h100-sxm", within=1.5)
def test_product(operand):
    assert operand == {operand}
"""


def outcome(pytester, here="h100-sxm", seconds=EXPECTED.seconds, operand=2):
    pytester.makepyfile(MARKED.format(here=here, seconds=seconds, operand=operand))
    return pytester.runpytest_inprocess(
        *PLUGIN, "--strict-markers", "-rs", "-p", "no:cacheprovider"
    )


@pytest.fixture(autouse=True)
def whole(monkeypatch):
    """The module's functions, given back after a test has put others in their place."""
    for name in ("device_here", "seconds_of"):
        monkeypatch.setattr(pytestplugin, name, getattr(pytestplugin, name))


def test_a_kernel_as_fast_as_predicted_passes(pytester):
    outcome(pytester).assert_outcomes(passed=1)


def test_a_slow_kernel_fails_with_both_times_and_the_limiter(pytester):
    result = outcome(pytester, seconds=2 * EXPECTED.seconds)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*measured *predicted * on h100-sxm*2.00 times the prediction*"])


def test_what_is_faster_than_the_range_fails_too(pytester):
    result = outcome(pytester, seconds=EXPECTED.low_seconds / 3)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*faster than the model's range*"])


def test_the_body_is_run_and_may_fail_by_itself(pytester):
    outcome(pytester, operand=3).assert_outcomes(failed=1)


@pytest.mark.parametrize(("here", "said"), [("", "there is no GPU here"), ("a100", "here is a100")])
def test_off_where_that_device_is_not_there(pytester, here, said):
    result = outcome(pytester, here=here)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"*runs on h100-sxm, and {said}*"])


def test_the_slug_is_that_of_the_driver_s_name(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pytestplugin.device_here() == ""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    named = SimpleNamespace(name="NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: named)
    assert pytestplugin.device_here() == "h100-sxm"


def test_unused_it_loads_nothing_of_the_model(pytester):
    pytester.makepyfile("def test_nothing():\n    pass\n")
    pytester.makeconftest(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    loaded = {'numpy', 'torch', 'perfmodel.predict', 'perfmodel.hardware'}\n"
        "    assert not loaded & set(sys.modules)\n"
    )
    code = f"import pytest, sys; sys.exit(pytest.main(['-q', *{PLUGIN}]))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
