"""What to ask Nsight Compute for, by what it said; texts as the profiler prints them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfmodel.profile.ncu import (
    METRICS,
    complaints,
    counted,
    metrics_for,
)

NEW_READ, NEW_WRITE = "dram__bytes_op_read.sum", "dram__bytes_op_write.sum"

# A chip that lacks two names, one refused with its suffix and one as the pattern that it was
# searched by (ncu expands names without a suffix).
REFUSED = """==PROF== Connected to process 20101 (/usr/bin/python3.10)
==ERROR== Failed to find metric dram__bytes_read.sum
==ERROR== Failed to find metric regex:^flop_count_sp\\.(sum|min|max|avg|pct|ratio|max_rate)$
==PROF== Disconnected from process 20101
==WARNING== No kernels were profiled.
"""
FORBIDDEN = """==PROF== Connected to process 87374 (/opt/bench/bin/bench)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM
==PROF== Disconnected from process 87374
==ERROR== An error occurred while trying to profile.
==ERROR== An error occurred while trying to profile.
"""  # noqa: E501
LISTED = """Device NVIDIA B200 (GB100)
----------------------------------------- --------------- --------------- ---------------------
Metric Name                               Metric Type     Metric Unit     Metric Description
----------------------------------------- --------------- --------------- ---------------------
dram__bytes                               Counter         byte            # of bytes accessed
dram__bytes_op_read                       Counter         byte            # of bytes read
dram__bytes_op_write                      Counter         byte            # of bytes written
gpu__time_duration                        Counter         nsecond         incremental duration
lts__t_bytes                              Counter         byte            # of bytes requested
sm__inst_executed_pipe_xu                 Counter         inst            # of warp instructions
"""


@given(st.text())
def test_any_text_leaves_a_list_of_known_names_and_complaints_of_a_line(said: str) -> None:
    assert set(metrics_for(said)) <= {*METRICS, NEW_READ, NEW_WRITE}
    assert all("\n" not in line for line in complaints(said))


def test_complaints_are_quoted_once_and_without_their_mark() -> None:
    assert complaints(REFUSED) == (
        "Failed to find metric dram__bytes_read.sum",
        "Failed to find metric regex:^flop_count_sp\\.(sum|min|max|avg|pct|ratio|max_rate)$",
    )
    first, second = complaints(FORBIDDEN)
    assert first.startswith("ERR_NVGPUCTRPERM - The user does not have permission")
    assert second == "An error occurred while trying to profile."
    assert complaints("==PROF== fine\n==WARNING== No kernels were profiled.\n") == ()


def test_what_a_chip_lists_is_what_is_asked_for() -> None:
    found = metrics_for(LISTED)
    assert set(found) == {
        "gpu__time_duration.sum", "lts__t_bytes.sum", NEW_READ, NEW_WRITE,
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    }  # fmt: skip
    assert set(counted(dict.fromkeys(found, 1.0))) == {
        "hbm_bytes_measured", "l2_bytes_measured", "xu_pipe_pct",
    }  # fmt: skip
    assert metrics_for("ncu: command not found") == METRICS
    hopper = "\n".join(f"{metric.split('.')[0]}  Counter" for metric in METRICS)
    assert metrics_for(hopper) == METRICS
