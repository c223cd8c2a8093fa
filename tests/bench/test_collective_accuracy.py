"""How far collectives are off on published runs, in sample and with a device left out."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from perfmodel.collectives.constants import shipped
from perfmodel.fitting.collectives import errors, fit, usable
from perfmodel.validation.collectives import predict_table, read


@pytest.fixture(scope="module")
def table(measured):
    path = measured / "collectives_dev.csv.gz"
    if not path.is_file():
        pytest.skip(f"no collectives at {path}")
    return usable(read([str(path)]))


def test_nccl_on_nvlink(table):
    found = predict_table(table)
    rows = found[found["library"] == "nccl"]
    assert (rows["reason"] == "").all()
    size = np.abs(np.log(rows["predicted"] / rows["latency_us"]))
    assert size.median() < 0.08
    assert size.quantile(0.9) < 0.21
    inside = (rows["low"] <= rows["latency_us"]) & (rows["latency_us"] <= rows["high"])
    assert 0.75 < inside.mean() < 0.85


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm"])
def test_a_device_that_the_fit_has_not_seen(table, device):
    mine = table["device"] == device
    # An even sample: the whole takes four times as long and gives the same to a hundredth.
    seen, unseen = table[~mine].iloc[::4].reset_index(drop=True), table[mine]
    values = {item.constant.name: item.constant.value for item in fit(seen, shipped())}
    size = np.abs(errors(unseen[unseen["library"] == "nccl"], values))
    assert np.median(size) < 0.12
    assert np.quantile(size, 0.9) < 0.30
