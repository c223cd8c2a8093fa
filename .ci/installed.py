"""Test an installed wheel: its code predicts without a compiler, and gives NumPy's numbers.

Run outside the repository; exits with 1 where a kind of call has no code, or other numbers.
"""

from __future__ import annotations

import os
import platform
import sys
import time

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.compiled import build, variants
from perfmodel.hardware import load
from perfmodel.predict import predict_arrays

DEVICE = "h100-sxm"


def main() -> int:
    """Compare, and print rates."""
    draw = np.random.default_rng(3)

    def sizes(low: int, high: int) -> np.ndarray:
        return np.exp(draw.uniform(np.log(low), np.log(high), 1000)).astype(np.int64)

    os.environ["PATH"], os.environ["CC"] = "", ""
    assert build.compiler() is None
    print(platform.python_version(), variants.described())
    if build.carried() is None:
        print("no code for this processor", platform.machine())
        return 0
    keys = sizes(16, 16384)
    calls = {
        "products": Matmul(sizes(1, 16384), sizes(16, 16384), sizes(16, 16384)),
        "prompts": Attention(sizes(1, 64), 32, 8, keys, keys, 128, causal=True),
        "decoding": Attention(sizes(1, 64), 32, 8, 1, keys, 128),
        "rows": Rowwise("softmax", sizes(1, 65536), sizes(16, 65536)),
    }
    device, failed = load(DEVICE), 0
    for name, problem in calls.items():
        os.environ[variants.ENVIRONMENT] = "off"
        reference = predict_arrays(problem, device).seconds
        os.environ[variants.ENVIRONMENT] = "wait"
        predict_arrays(problem, device)
        start = time.process_time()
        seconds = predict_arrays(problem, device).seconds
        rate = len(seconds) / (time.process_time() - start)
        kind = [*variants._KINDS.values()][-1]
        off = float(np.max(np.abs(seconds / reference - 1.0)))
        good = bool(kind.variants) and all(each.run for each in kind.variants) and off <= 1e-12
        failed += not good
        print(f"{name:10} {'by the package' if good else 'FAILED'} {rate:12,.0f}/s {off:.1e}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
