"""FLOPs of models of transformers beside torch's own counter on the same module.

Small sizes, one layer each. The families that a config.json is read of have tests of their own
(test_tracing_transformers.py, Gemma 3 among them); these are others: images, sound, encoders with
decoders, state-space layers, linear attention.
"""

import pytest
from transformersmodels import MODELS

from perfmodel.tracing import trace

torch = pytest.importorskip("torch")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; it is in the extra dev"
)
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
"""By class: the sizes of its configuration, and the shapes of its inputs."""
UNCOUNTED = {"Qwen3NextForCausalLM": 2 * 2 * 3 * 2 * 8 * 64 * 32}
"""FLOPs of grouped products, which torch's counter does not know: of 2 layers, 2 experts a token,
3 products, 8 tokens."""
UNKNOWN = {"Qwen3NextForCausalLM": {"aten.linalg_solve_triangular"}}
"""Operators that `trace` names as not known, and torch's counter passes over."""


def model_and_inputs(name):
    """A model in bf16 on the meta device, and its inputs by name."""
    sizes, shapes = MODELS[name]
    kind = name.removesuffix("ForConditionalGeneration").removesuffix("ForCausalLM")
    kind = kind.removesuffix("ForMaskedLM").removesuffix("Model").removesuffix("Encoder")
    config = getattr(transformers, f"{kind}Config")(**sizes)
    places = (transformers, transformers.models.whisper.modeling_whisper)
    with torch.device("meta"):
        model = next(getattr(place, name) for place in places if hasattr(place, name))(config)
        inputs = {
            key: torch.zeros(shape, dtype=torch.int64 if "ids" in key else torch.bfloat16)
            for key, shape in shapes.items()
        }
    return model.to(torch.bfloat16).eval(), inputs


@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_torchs_counter(name):
    model, inputs = model_and_inputs(name)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs)
    traced = trace(model, kwargs=inputs)
    assert counter.get_total_flops() > 0
    assert traced.flops == counter.get_total_flops() + UNCOUNTED.get(name, 0)
    assert traced.unknown.keys() == UNKNOWN.get(name, set())
