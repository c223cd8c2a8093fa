"""Ctrl-C while torch is imported."""

import signal
import subprocess
import sys
import threading

import pytest
from folders import ROOT

from perfmodel.interrupts import import_whole

MODULE = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    INTERRUPTED = False
except KeyboardInterrupt:
    INTERRUPTED = True
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that is interrupted twice while it is imported."""
    (tmp_path / "perfmodel_interrupted.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "perfmodel_interrupted"
    sys.modules.pop("perfmodel_interrupted", None)


def test_an_interrupt_during_an_import_raises_after_it(module):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        import_whole(module)
    assert not sys.modules[module].INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is before
    assert import_whole(module) is sys.modules[module]


def test_an_interrupt_is_not_lost_where_the_import_fails(module, tmp_path):
    path = tmp_path / f"{module}.py"
    path.write_text(path.read_text() + "import perfmodel_that_is_not_there\n")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        import_whole(module)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ImportError):
        import_whole("perfmodel_that_is_not_there")


def test_ignored_interrupts_stay_ignored_and_threads_import_too(module):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert not import_whole(module).INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    names = []
    thread = threading.Thread(target=lambda: names.append(import_whole("json").__name__))
    thread.start()
    thread.join()
    assert names == ["json"]


STARTING = """
import sys
torch_modules = 0
class Finder:
    def find_spec(name, *_):
        global torch_modules
        torch_modules += name.split(".")[0] == "torch"
        if name.split(".")[0] == "torch" and torch_modules == int(sys.argv[1]):
            print("importing", flush=True)
sys.meta_path.insert(0, Finder)
from perfmodel.cli import main
main(sys.argv[2:])
"""
COMMANDS = (
    "measure --device cpu --quick --ops softmax -o x.csv",
    "calibrate --device cpu --quick -o x.yaml",
    "trace m.py:Model -d h100-sxm -i bf16[8,8]",
    "replay stream",
)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(("command", "modules"), [*zip(COMMANDS, (1, 20, 50, 300), strict=True)])
def test_a_command_that_is_interrupted_while_torch_is_imported_ends_with_130(
    command, modules, tmp_path
):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    process = subprocess.Popen(
        [sys.executable, "-c", STARTING, str(modules), *command.split()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert "terminate called" not in err
    assert list(tmp_path.glob("x.*")) == []
