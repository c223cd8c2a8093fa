"""Ski slopes: laws of the curves, and a chart that is the same bytes on every run."""

from __future__ import annotations

import numpy as np
import pytest
from cases import listed

from perfmodel.algorithms import library
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.napkin.skislope import levels, ski_slopes
from perfmodel.render.chart import save
from perfmodel.render.skislope import figure

CASES = listed(__file__, "CASES")


@pytest.fixture(scope="module", params=sorted(CASES))
def slopes(request):
    case = library.load(request.param).at(**CASES[request.param])
    return ski_slopes(case, load("h100-sxm"), columns=3000)


def test_more_memory_never_moves_more(slopes):
    for curve in slopes.curves:
        there = curve.moved_bytes[np.isfinite(curve.moved_bytes)]
        assert np.all(np.diff(there) <= 0)
        # What fits in some memory fits in more.
        assert np.isfinite(curve.moved_bytes[-1])


def test_the_best_fusion_is_no_worse_than_all_or_nothing(slopes):
    if len(slopes.curves) == 1:
        return
    fused, best, apart = (curve.moved_bytes for curve in slopes.curves)
    assert np.all(best <= fused)
    assert np.all(best <= apart)


def test_no_curve_crosses_its_lower_bound(slopes):
    for curve in slopes.curves:
        assert np.all(curve.moved_bytes >= 0.99 * slopes.bound_bytes)


def test_fusing_an_mlp_pays_from_about_25_mib():
    # M ≈ d² elements: 32 MiB of bf16 at 4096; between the two in sums of four bytes.
    crossing = ski_slopes(library.load("mlp").at()).crossing()
    assert 20 * 2**20 < crossing < 40 * 2**20
    # Attention: at a few tiles already.
    assert ski_slopes(library.load("attention").at()).crossing() < 100 * 2**10


def test_levels_of_a_device():
    found = levels(load("h100-sxm"))
    assert found == {"registers": 256 * 1024, "shared": 227 * 1024, "L2": 50 * 2**20}


def test_the_chart_is_reproducible(tmp_path):
    case = library.load("attention").at(seq=2048, heads=1)
    paths = [tmp_path / name for name in ("one.svg", "two.svg", "three.png")]
    for path in paths:
        save(figure(ski_slopes(case, load("h100-sxm"), columns=2000)), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    text = paths[0].read_text()
    for word in ("fused", "best fusion", "one kernel a step", "L2 50.0 MiB", "shared 227 KiB"):
        assert word in text
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_a_chart_of_nothing_says_so():
    case = library.load("attention").at(seq=2048)
    with pytest.raises(ProblemError, match="no schedule of attention fits in any capacity"):
        figure(ski_slopes(case, low_bytes=1, high_bytes=4))
