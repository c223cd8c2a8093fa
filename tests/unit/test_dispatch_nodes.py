"""Nodes that a token's experts lie on, by the formula and by drawing routers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.collectives import Collective, predict_collective
from perfmodel.collectives.router import Router
from perfmodel.errors import ProblemError
from perfmodel.hardware import systems

H800 = systems.load("hgx-h800")
routers = st.one_of(
    st.builds(Router, st.integers(1, 16)),
    st.builds(Router, st.integers(1, 16), st.just(8), st.integers(1, 8)),
)


@given(routers, st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_copies_are_at_most_the_experts_the_nodes_and_the_limit(router, nodes):
    reached = router.nodes(nodes)
    assert 1 - 1e-9 <= reached <= min(router.chosen, nodes) + 1e-9
    if nodes > 8 and router.chosen_groups:
        assert reached <= router.chosen_groups * nodes / 8 + 1e-9
    assert router.share(nodes) == reached / router.chosen


@given(st.integers(1, 16), st.sampled_from([2, 4, 8, 16]), st.integers(1, 7))
def test_a_limit_of_groups_never_adds_nodes(chosen, nodes, limit):
    assert Router(chosen, 8, limit).nodes(nodes) <= Router(chosen).nodes(nodes) * (1 + 1e-9)
    assert Router(chosen, 8, 8).nodes(nodes) == Router(chosen).nodes(nodes)
    assert Router(chosen, 8, limit).nodes(nodes) <= Router(chosen, 8, limit + 1).nodes(nodes) + 1e-9


@pytest.mark.parametrize("nodes", [2, 4, 8, 16])
@pytest.mark.parametrize("limit", [1, 3, 4, 8])
def test_copies_are_those_of_drawn_routers(nodes, limit):
    draw = np.random.default_rng(nodes * limit)
    seen = []
    for _ in range(4000):
        group = draw.choice(8, limit, replace=False)[draw.integers(0, limit, 8)]
        place = (group + draw.random(8)) / 8  # of 8 experts along the nodes
        seen.append(len(set((place * nodes).astype(int))))
    assert Router(8, 8, limit).nodes(nodes) == pytest.approx(np.mean(seen), rel=0.03)


def test_deepseek_v3_sends_a_token_to_three_and_a_half_of_eight_nodes():
    """2412.19437, section 3.2.2: at most 4 nodes of 8; 8 experts spread over them evenly miss
    (3/4)^8 of each."""
    assert Router(8, 8, 4).nodes(8) == pytest.approx(4 * (1 - 0.75**8))
    assert Router(8).nodes(8) == pytest.approx(8 * (1 - 0.875**8))


@given(st.integers(2**16, 2**28), st.floats(0.05, 1.0), st.sampled_from([16, 32, 64]))
def test_fewer_copies_over_the_network_take_no_longer(bytes_, share, ranks):
    every, few = (
        predict_collective(Collective("all-to-all", bytes_, ranks, network_share=s), H800).one(0)
        for s in (1.0, share)
    )
    forwarded = bytes_ * 7 / 8 / (H800.levels[0].bytes_per_s)
    assert few.seconds <= every.seconds or few.limiter == "nvlink"
    assert few.seconds > forwarded * (share < 1)


def test_a_share_of_nothing_or_more_than_everything_is_refused():
    for share in (0.0, 1.5):
        with pytest.raises(ProblemError, match="network share"):
            Collective("all-to-all", 1, 2, network_share=share)
