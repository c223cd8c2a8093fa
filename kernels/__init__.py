"""The bundled Triton kernels: one family a file, each with reference, schedule and config menu.

They are installed as `perfmodel_kernels`. Each module that is listed has its kernels in `KERNELS`.
"""

MODULES = (
    "stream",
    "chain",
    "softmax",
    "norms",
    "add_norm",
    "quantise",
    "rotary",
    "cross_entropy",
    "ssd_scan",
    "gated_delta",
    "matmul",
    "weight_only",
    "grouped",
    "block_scaled",
    "microscaled",
    "attention_standard",
    "attention_tiled",
    "attention_gluon",
    "attention_gluon_blackwell",
    "attention_backward",
    "attention_gluon_backward",
    "attention_flash1",
    "attention_decode",
    "attention_paged",
    "attention_latent",
)
