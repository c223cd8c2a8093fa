"""The public names as another package uses them: read by `make check` and never run.

What is right has the type that is written here. What is wrong is an error, and says so: a comment
that ignores none is an error itself.
"""

import perfmodel
import perfmodel.triton
from perfmodel import Device, Devise, Prediction, load, predict  # type: ignore[attr-defined]

device: Device = load("h100-sxm")
problem = perfmodel.Matmul(128, 128, 128)
found: Prediction = predict(problem, device)
seconds: float = found.seconds

unknown: Devise
perfmodel.lode("h100-sxm")  # type: ignore[attr-defined]
number: int = load  # type: ignore[assignment]
