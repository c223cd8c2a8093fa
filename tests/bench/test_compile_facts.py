"""The table of compile facts: made from today's sources, complete, and repeatable."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("triton")

from perfmodel.measured import compilesuite
from perfmodel.measured.compilesuite import planned, requests
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.compiled import CompiledKernel, Request, compile_all
from perfmodel.proof.compiled.compilefacts import FITS, LaunchFacts
from perfmodel.proof.compiled.targets import TARGETS

# Kernels whose case is made of other kernels' shapes, or that show how it was done: not raced.
UNTUNED = {
    "attention-flash1", "attention-standard", "attention-standard-backward",
}  # fmt: skip
SAMPLE = 4


def entries(name: str) -> list[Request]:
    """Every config of the kernel's menus on its full-size problems, on every target."""
    kernel = registry.kernel(name)
    found = [request for goal in TARGETS.values() for request in requests(kernel, goal)]
    distinct = {tuple(request.binaries()): request for request in found}
    return list(distinct.values())


def facts_of(request: Request) -> tuple[LaunchFacts, ...] | None:
    table = compilefacts.table()
    return table.of(request.kernel, request.problem, request.config, request.target)


@pytest.mark.parametrize("name", sorted(set(registry.kernels()) - UNTUNED))
def test_every_entry_of_every_menu_is_known_to_fit_and_to_spill_nothing(name: str) -> None:
    """A kernel that was changed has other keys: make the table anew with --write."""
    every = entries(name)
    assert every
    for request in every:
        facts = facts_of(request)
        said = f"{request.says()} for {request.problem}"
        assert facts is not None, f"{said} is not in {compilefacts.NAME}; make it anew"
        for fact in facts:
            assert fact.status == FITS, f"{said}: {fact.reason}"
            assert fact.spill_bytes == 0, f"{said} spills {fact.spill_bytes} bytes a thread"
            assert fact.blocks >= 1, said
            assert fact.registers > 0, said


@pytest.mark.parametrize(("target", "device"), [("sm_90", "h200-sxm"), ("sm_100", "b200")])
def test_what_a_day_would_try_is_known(target: str, device: str) -> None:
    every = list(planned(TARGETS[target], device))
    assert len(every) > 50
    for request in every:
        facts = facts_of(request)
        assert facts is not None, f"{request.says()} for {request.problem}"
        assert all(fact.usable for fact in facts), f"{request.says()} for {request.problem}"


def test_a_row_is_what_the_compiler_says() -> None:
    """Some rows of the two quickest kernels to compile, drawn anew with each version of them."""
    known = compilefacts.table().rows()
    draw = random.Random(len(known))
    every = [each for name in ("copy", "softmax") for each in entries(name)]
    sample = draw.sample(every, SAMPLE)
    for request, made in compile_all(sample):
        assert isinstance(made, CompiledKernel), made
        facts = facts_of(request)
        assert facts is not None
        for mine, fact in zip(made.facts(), facts, strict=True):
            if mine.triton != fact.triton:
                pytest.skip(f"the table is of Triton {fact.triton}, this is {mine.triton}")
            # The same binary may serve several problems, and the table names one of them.
            assert {**mine.row(), "problem": ""} == {**fact.row(), "problem": ""}


def test_no_row_is_of_a_kernel_that_is_gone() -> None:
    """Every binary of the table is of an entry of a menu, or of what a day would try."""
    asked = [each for name in registry.kernels() for each in entries(name)]
    for target, device in (("sm_90", "h200-sxm"), ("sm_100", "b200")):
        asked += planned(TARGETS[target], device)
    every = {key for each in asked for key in each.binaries()}
    assert {row.key for row in compilefacts.table().rows()} <= every


def test_the_table_agrees_with_any_problem_that_shares_a_binary() -> None:
    """Cells are rounded and name one problem of several; any other number is a difference."""
    rows = compilefacts.table().rows()
    exact = next(row for row in rows if row.cycles)
    pipe, cycles = next(iter(exact.cycles.items()))
    finer = replace(exact, cycles={**exact.cycles, pipe: cycles * (1 + 1e-9)})
    assert (
        compilesuite.differences([finer, replace(exact, problem="another", kernel="another")]) == 0
    )
    slower = replace(exact, cycles={**exact.cycles, pipe: cycles * 1.01})
    larger = replace(exact, registers=exact.registers + 1)
    assert compilesuite.differences([slower, larger, replace(exact, key="unknown")]) == 3


def test_one_kernels_rows_are_written_and_the_others_stay(monkeypatch, tmp_path, capsys) -> None:
    known = compilefacts.table().rows()
    (fact, *_) = (row for row in known if row.kernel == "copy")
    monkeypatch.setattr(compilefacts, "folder", lambda: tmp_path)
    monkeypatch.setattr(compilesuite, "cases", lambda *_: [])
    monkeypatch.setattr(compilesuite, "planned", lambda *_: [])
    made = compilesuite.Outcome(next(iter(entries("copy"))), "compiled", facts=(fact,))
    monkeypatch.setattr(compilesuite, "menus", lambda *_: [made])
    assert compilesuite.main(["--kernel", "copy", "--write"]) == 0
    written = compilefacts.read(tmp_path / compilefacts.NAME)
    assert {row.key for row in written if row.kernel == "copy"} == {fact.key}
    others = [row for row in known if row.kernel != "copy"]
    assert sorted(row.key for row in written if row.kernel != "copy") == sorted(
        row.key for row in others
    )
    with pytest.raises(SystemExit, match="2"):
        compilesuite.main(["--kernel", "nonsense"])
    assert "no kernel named 'nonsense'" in capsys.readouterr().err
