"""Names of implementations find their kernels, and kernels their fallbacks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.hardware import load, names
from perfmodel.predict import predict
from perfmodel.timing.cuts import EvenCut
from perfmodel.timing.libraries import kernel_facts, kernels, naming, resolve, usual
from perfmodel.timing.machine import machine

H100, A100, B200, T4, MI300X = (
    load(slug) for slug in ("h100-sxm", "a100-sxm4-80gb", "b200", "t4", "mi300x")
)

# Kernels for Blackwell alone.
# (operator, type, implementation as measured-run tables name it, class).
NAMED = [
    ("attention", "fp16", "flash1", "flash1"),
    ("attention", "fp16", "flash2", "flash2"),
    ("attention", "fp16", "flash3", "flash3"),
    ("attention", "fp16", "flash-triton", "flash-triton"),
    ("attention", "fp16", "triton", "flash-triton"),
    ("attention", "fp16", "torch", "eager"),
    ("attention", "fp16", "megatron", "eager"),
    ("attention", "fp16", "cudnn", "cudnn"),
    ("attention", "fp16", "xformers-cutlass", "xformers"),
    ("attention", "bf16", "vllm-0.14.0:vllm_flash_attn", "vllm-flash"),
    ("attention", "bf16", "vllm-0.19.0:vllm_flash_attn", "vllm-flash"),
    ("attention", "bf16", "vllm-0.22.0:vllm_flash_attn", "vllm-flash"),
    ("attention", "bf16", "vllm-0.24.0:vllm_flash_attn_fa3", "flash3"),
    ("attention", "bf16", "vllm-0.24.0:vllm_vit_flash_attn_fa3", "flash3"),
    ("attention", "bf16", "vllm-0.24.0:vllm_flash_attn_fa4", "flash4"),
    ("attention", "bf16", "vllm-0.19.0:vllm_vit_flash_attn", "vllm-flash"),
    ("attention", "bf16", "vllm-0.22.0:vllm_vit_flash_attn", "vllm-flash"),
    ("attention", "bf16", "vllm-0.24.0:vllm_vit_flash_attn_fa2", "flash2"),
    ("attention", "bf16", "trtllm-1.0.0:fmha", "tensorrt-llm"),
    ("attention", "bf16", "trtllm-1.0.0:torch_flow", "tensorrt-llm"),
    ("attention", "bf16", "sglang-0.5.5:trtllm_mha", "trtllm"),
    ("attention", "bf16", "sglang-0.5.14:trtllm_mha", "trtllm"),
    ("attention", "bf16", "sglang-0.5.5:flash_attention", "sglang-flash"),
    ("attention", "bf16", "sglang-0.5.10:flash_attention", "sglang-flash"),
    ("attention", "bf16", "sglang-0.5.11:flash_attention_v3", "sglang-flash"),
    ("attention", "bf16", "sglang-0.5.11:flash_attention_v4", "flash4"),
    ("attention", "bf16", "sglang-0.5.14:flash_attention_v3", "sglang-flash"),
    ("attention", "bf16", "sglang-0.5.14:flash_attention_v4", "flash4"),
    ("attention", "bf16", "sglang-0.5.5:aiter_attention", "aiter"),
    ("attention", "bf16", "sglang-0.5.5:triton", "sglang-triton"),
    ("attention", "bf16", "sglang-0.5.14:triton", "sglang-triton"),
    ("attention", "bf16", "vllm-0.14.0:vllm_triton_attn", "vllm-triton"),
    ("attention", "bf16", "vllm-0.22.0:vllm_triton_attn", "vllm-triton"),
    ("attention", "bf16", "vllm-0.24.0:vllm_triton_attn", "vllm-triton"),
    ("attention", "bf16", "flashinfer-0.2", "fmha"),
    ("attention", "bf16", "vllm-0.14.0:vllm_flashinfer", "fmha"),
    ("attention", "bf16", "vllm-0.22.0:vllm_flashinfer", "fmha"),
    ("attention", "bf16", "vllm-0.24.0:vllm_flashinfer_fidecode", "fmha"),
    ("attention", "bf16", "vllm-0.24.0:vllm_flashinfer_fiprefill", "fmha"),
    ("attention", "bf16", "sglang-0.5.14:sglang", "fmha"),
    ("attention", "bf16", "sglang-0.5.14:flashinfer", "sglang-flashinfer"),
    ("attention", "bf16", "vllm-0.24.0:vllm_flash_attn_fa2", "flash2"),
    ("attention", "bf16", "sglang-0.5.14:fa3", "sglang-flash"),
    ("attention", "bf16", "vllm-0.14.0", "vllm-flash"),
    ("attention", "fp8", "cudnn", "cudnn"),
    ("attention", "fp8", "flash3", "flash3"),
    ("attention", "fp8", "triton", "flash-triton"),
    ("attention", "fp8", "sglang-0.5.14:fa3", "sglang-flash"),
    ("attention", "fp8", "sglang-0.5.14:triton", "sglang-triton"),
    ("attention", "fp8", "sglang-0.5.14:trtllm_mha", "trtllm"),
    ("gemm", "fp16", "torch", "cublas"),
    ("gemm", "fp16", "torch-cublas", "cublas"),
    ("gemm", "bf16", "torch.matmul", "cublas"),
    ("gemm", "bf16", "vllm-0.14.0:vllm_default", "cublas"),
    ("gemm", "bf16", "vllm-0.24.0:torch.nn.functional.linear", "cublas"),
    ("gemm", "fp8", "trtllm-1.0.0:torch_flow", "trtllm-fp8"),
    ("gemm", "nvfp4", "vllm-0.14.0:vllm_default", "vllm-fp4"),
    ("gemm", "int8", "cublas", "cublas-int8"),
    ("gemm", "bf16", "sglang-0.5.10:sglang", "cublas"),
    ("gemm", "bf16", "sglang-0.5.14:sglang_torch_linear", "cublas"),
    ("gemm", "fp8", "sglang-0.5.14:sglang_sgl_kernel_fp8_scaled_mm", "sgl-fp8"),
    ("gemm", "fp8_block", "sglang-0.5.14:sglang_deepgemm_gemm_nt_f8f8bf16", "deepgemm"),
    ("gemm", "nvfp4", "vllm-0.24.0:FlashInferCuteDslNvFp4LinearKernel", "vllm-fp4"),
    ("gemm", "fp16", "cublas", "cublas"),
    ("gemm", "bf16", "trtllm-1.0.0:torch_flow", "cublas"),
    ("gemm", "bf16", "trtllm-1.3.0:torch_flow", "cublas"),
    ("gemm", "nvfp4", "trtllm-1.0.0:torch_flow", "cutlass-fp4"),
    ("gemm", "nvfp4", "sglang-0.5.14:sglang_flashinfer_cutedsl_nvfp4", "cutlass-fp4"),
    ("gemm", "fp8", "vllm-0.14.0:vllm_default", "cutlass-fp8"),
    ("gemm", "fp8", "sglang-0.5.5:sglang", "sgl-fp8"),
    ("gemm", "fp8_block", "vllm-0.14.0:vllm_default", "vllm-deepgemm"),
    ("gemm", "fp8_block", "sglang-0.5.5:sglang", "deepgemm"),
    ("gemm", "fp8_block", "trtllm-1.0.0:torch_flow", "trtllm-deepgemm"),
    ("gemm", "fp8_block", "trtllm-1.0.0:deepgemm", "trtllm-deepgemm"),
    ("gemm", "fp32", "torch-eager(2.1.0)", "cublas-fp32"),
    ("gemm", "fp32", "torch-eager", "cublas-fp32"),
    ("gemm", "fp32", "torch-eager(HF fx)", "cublas-fp32"),
    ("gemm", "fp32", "torch-compile", "cublas-fp32"),
    ("gemm", "fp32", "cublas", "cublas-fp32"),
    ("gemm", "fp16", "torch.matmul", "cublas"),
    ("gemm", "bf16", "aiter:ck", "ck-gemm"),
    ("gemm", "fp8", "aiter:ck", "ck-gemm"),
    ("gemm", "fp8_block", "aiter:ck", "ck-gemm-block"),
    ("gemm", "fp8_block", "aiter:cktile", "ck-gemm-block"),
    ("gemm", "int8", "aiter:asm", "aiter-asm"),
    ("gemm", "fp8_block", "aiter:asm", "aiter-asm-block"),
    ("gemm", "fp8", "vllm-0.24.0:CutlassFP8ScaledMMLinearKernel", "cutlass-fp8"),
    ("gemm", "fp8_block", "vllm-0.24.0:CutlassFp8BlockScaledMMKernel", "cutlass-fp8-block"),
    ("gemm", "fp8_block", "vllm-0.24.0:DeepGemmFp8BlockScaledMMKernel", "vllm-deepgemm"),
    ("gemm", "fp8_block", "vllm-0.24.0:FlashInferFp8BlockScaledMMKernel", "vllm-deepgemm"),
    ("gemm", "w8a16", "trtllm-1.0.0:weight_only_quant_matmul_L257/PLUGIN_V2_", "weight-only"),
    ("gemm", "w4a16", "trtllm-1.0.0:weight_only_quant_matmul_L257/PLUGIN_V2_", "weight-only"),
    ("gemm", "w4a16", "vllm:marlin", "weight-only"),
    ("gemm", "w8a8_int8", "trtllm-1.0.0:smooth_quant_gemm_L96/PLUGIN_V2_SmoothQu", "cutlass-int8"),
    ("gemm", "fp16", "triton", "triton-gemm"),
    ("gemm", "bf16", "triton-persistent", "triton-gemm"),
    ("gemm", "fp32", "triton", "triton-gemm-fp32"),
    ("gemm", "fp8_block", "vllm-0.24.0:TritonFp8BlockScaledMMKernel", "triton-fp8-block"),
    ("softmax", "fp32", "torch-eager(2.1.0)", "torch-softmax"),
    ("softmax", "fp32", "torch-eager(HF fx)", "torch-softmax"),
    ("softmax", "fp16", "torch(2.1)", "torch-softmax"),
    ("softmax", "fp16", "torch", "torch-softmax-shared"),
    ("softmax", "fp32", "torch-eager", "torch-softmax-shared"),
    ("softmax", "fp32", "torch-eager(HF fx, 2.2)", "torch-softmax-shared"),
    ("softmax", "fp32", "torch-compile", "inductor-softmax"),
    ("layernorm", "fp32", "torch-compile", "inductor-layernorm"),
    ("layernorm", "fp16", "torch", "torch-layernorm"),
    ("layernorm", "fp32", "torch-eager(2.1.0)", "torch-layernorm"),
    ("layernorm", "fp32", "torch-eager", "torch-layernorm"),
    ("layernorm", "fp16", "sarathi/torch", "torch-layernorm"),
    ("layernorm", "fp32", "torch-eager(HF fx)", "torch-layernorm"),
    ("rmsnorm", "fp16", "sarathi/torch", "vllm-rmsnorm"),
    # Operators that libraries run as chains.
    ("gated-delta", "bf16", "sglang-0.5.16:fused_sigmoid_gating_delta_rule_update", "delta-verify"),
    ("gated-delta", "bf16", "sglang-0.5.16:fused_kda_decode_mtp_dspark", "delta-verify"),
    ("gated-delta", "bf16", "trtllm-1.3.0rc20:fused_recurrent_gated_delta_rule",
     "delta-step-narrow"),
    ("gated-delta", "bf16", "sglang-0.5.14:fused_recurrent_gated_delta_rule_packed_decode",
     "delta-step"),
    ("gated-delta", "bf16", "vllm-0.24.0:chunk_gated_delta_rule_flashinfer", "delta-fused"),
    ("gated-delta", "bf16", "sglang-0.5.16:chunk_kda", "kimi-chunks"),
    ("gated-delta", "bf16", "sglang-0.5.14:chunk_gated_delta_rule", "delta-chunks"),
    ("causal-conv1d", "bf16", "sglang-0.5.16:causal_conv1d_fn_qkv3", "conv1d-three"),
    ("causal-conv1d", "bf16", "sglang-0.5.14:causal_conv1d_update", "conv1d-update"),
    ("causal-conv1d", "bf16", "trtllm-1.3.0rc20:causal_conv1d_fn", "conv1d-copies"),
    ("causal-conv1d", "bf16", "sglang-0.5.14:causal_conv1d_fn", "conv1d-kernel"),
    ("residual-streams", "bf16", "sglang-0.5.14:sglang_tilelang_mhc_post", "streams-post"),
    ("residual-streams", "bf16", "sglang-0.5.14:sglang_tilelang_mhc_pre", "streams-pre"),
    ("index-scores", "fp8", "sglang-0.5.14:deep_gemm.fp8_mqa_logits", "mqa-logits"),
    ("compressed-layer", "bf16", "sglang-0.5.14:compressed_flashmla", "compressed-latent-layer"),
    ("compressed-layer", "fp8_block", "vllm-0.24.0:FLASHMLA_SPARSE_DSV4",
     "compressed-latent-layer"),
    ("block-layer", "bf16", "vllm-0.24.0:MiniMaxM3SparseMSAImpl", "block-sparse-layer"),
    ("sparse-layer", "bf16", "sglang-0.5.14:sglang_dsa_dense_mha_fa3", "sparse-latent-layer"),
    ("sparse-layer", "bf16", "vllm-0.24.0:FLASHINFER_MLA_SPARSE", "vllm-sparse-layer"),
    ("sparse-layer", "bf16", "trtllm-1.3.0rc20:default", "vllm-sparse-layer"),
    ("sparse-layer", "bf16", "sglang-0.5.14:sglang_dsa_dense_mha_trtllm_ragged",
     "sparse-latent-layer"),
    ("moe", "w4a16", "sglang-0.5.14:sglang_marlin_moe", "marlin-experts"),
    ("moe", "fp8_block", "sglang-0.5.10:deepepmoe", "deepgemm-experts"),
    ("moe", "fp8_block", "trtllm-1.3.0rc10:wideep_compute_cutlass", "cutlass-experts"),
    ("moe", "bf16", "sglang-0.5.14:sglang_flashinfer_trtllm_moe", "trtllm-gen-experts"),
    ("moe", "bf16", "trtllm-1.3.0rc20:moe_torch_flow_cutlass", "cutlass-experts"),
    ("moe", "bf16", "sglang-0.5.14:sglang_flashinfer_cutlass_moe", "untuned-experts"),
    ("expert-dispatch", "bf16", "deepep(sglang-0.5.12):normal", "deepep-dispatch"),
    ("expert-dispatch", "bf16", "deepep(sglang-0.5.12):low_latency", "low-latency-dispatch"),
    ("expert-dispatch", "bf16", "vllm-0.24.0:deepep_ht", "vllm-deepep-dispatch"),
    ("expert-dispatch", "bf16", "vllm-0.24.0:deepep_ll", "vllm-low-latency-dispatch"),
    ("expert-dispatch", "bf16", "vllm-0.24.0:deepep_v2_context", "deepep-v2-dispatch"),
    ("expert-combine", "bf16", "deepep(sglang-0.5.12):normal", "deepep-combine"),
    ("expert-combine", "bf16", "deepep(sglang-0.5.12):low_latency", "low-latency-combine"),
    ("expert-combine", "bf16", "vllm-0.24.0:deepep_ht", "vllm-deepep-combine"),
    ("expert-combine", "bf16", "vllm-0.24.0:deepep_ll", "vllm-low-latency-combine"),
    ("expert-combine", "bf16", "vllm-0.24.0:deepep_v2_context", "deepep-v2-combine"),
    ("moe", "nvfp4", "vllm-0.24.0:vllm_flashinfer_cutlass", "vllm-cutlass-experts"),
    ("moe", "w4a16_mxfp4", "vllm-0.24.0:vllm_gptossmxfp4moe_triton_oaitriton", "ogs-experts"),
    ("moe", "w4a16_mxfp4", "trtllm-1.3.0rc20:moe_torch_flow", "ogs-experts"),
    ("moe", "bf16", "sglang-0.5.14:sglang_fused_moe_triton", "sglang-fused-experts"),
    ("moe", "bf16", "vllm-0.24.0:vllm_unquantizedfusedmoe_triton_tritonexperts",
     "vllm-fused-experts"),
    ("mla-projection", "fp8", "sglang-0.5.14:sglang_sgl_kernel_bmm_fp8", "sgl-bmm-fp8"),
    ("mla-projection", "fp8_block", "trtllm-1.3.0rc20:trtllm_fp8_block_scaling_bmm_out",
     "trtllm-bmm-fp8"),
    ("mla-projection", "bf16", "sglang-0.5.14:sglang_torch_bmm", "batched-projection"),
    ("mla-layer", "bf16", "trtllm-1.3.0rc20:default", "trtllm-mla-layer-prompt"),
    ("mla-layer", "fp8_block", "sglang-0.5.10:fa3", "sglang-mla-layer-prompt"),
    ("mla-prompt", "bf16", "sglang-0.5.14:trtllm_mla", "sglang-mla-prompt"),
    ("mla-prompt", "bf16", "trtllm-1.3.0rc20:default", "trtllm-mla-prompt"),
    ("mla", "bf16", "sglang-0.5.14:trtllm_mla", "sglang-trtllm-mla"),
    ("mla", "bf16", "sglang-0.5.14:flash_attention", "sglang-mla"),
    ("mla", "bf16", "trtllm-1.3.0rc20:default", "trtllm-mla"),
    ("mla-projection", "bf16", "torch.bmm", "batched-projection"),
    ("causal-conv1d", "bf16", "conv1d", "conv1d-kernel"),
    ("attention", "bf16", "flashmla", "flashmla"),
]  # fmt: skip
# Kernels that exist for the newest of two devices alone.
NEWEST = (
    "cudnn",
    "vllm-fp4",
    "cutlass-fp4",
    "flash4",
    "fmha",
    "trtllm",
    "tensorrt-llm",
    "sglang-triton",
    "sglang-flashinfer",
)
# Names that no measured run has yet, or whose operator's runs are not told apart by them.
ALSO_NAMED = [
    ("attention", "fp16", "flash1-first", "flash1-first"),
    ("attention", "fp16", "mem_efficient", "xformers"),
    ("attention", "fp16", "flash_attn_3", "flash3"),
    ("attention", "fp16", "flash_attention", "flash3"),
    ("attention", "fp16", "flash4", "flash4"),
    ("attention", "fp16", "sglang:fmha", "fmha"),
    ("attention", "fp16", "cpu-flash", "cpu-blocked"),
    ("attention", "fp16", "FlashAttention (fa2)", "flash2"),
    ("attention", "fp16", "sdpa", "sdpa"),
    ("attention", "fp16", "aten-flash", "flash2"),
    ("attention", "fp16", "a vllm fork", "flash2"),
    ("attention", "fp16", "eager", "eager"),
    ("attention", "fp16", "math", "eager"),
    ("attention", "fp16", "standard", "eager"),
    ("gemm", "fp8_block", "deep_gemm", "deepgemm"),
    ("rmsnorm", "fp16", "vllm-0.6.3:rms_norm", "vllm-rmsnorm"),
    ("rmsnorm", "fp16", "vllm-0.14.0:rms_norm", "vllm-rmsnorm-wide"),
    ("rmsnorm", "bf16", "sglang-0.5.5:rmsnorm", "flashinfer-norm"),
    ("rmsnorm", "bf16", "flashinfer-0.2", "flashinfer-norm"),
    ("rmsnorm", "bf16", "trtllm-1.0.0:rmsnorm", "trtllm-rmsnorm"),
    ("rmsnorm", "bf16", "torch", "torch-rmsnorm"),
    ("rmsnorm", "fp32", "torch:norm", "torch-rmsnorm"),
    ("rmsnorm", "bf16", "torch-2.9.1:rms_norm", "torch-rmsnorm"),
    ("rmsnorm", "bf16", "torch-2.10.0:rms_norm", "torch-rmsnorm"),
    ("rmsnorm", "bf16", "torch-2.8.0:rms_norm", "hf-rmsnorm"),
    ("rmsnorm", "bf16", "huggingface", "hf-rmsnorm"),
    ("rmsnorm", "bf16", "torch-eager", "hf-rmsnorm"),
    ("rmsnorm", "bf16", "transformers", "hf-rmsnorm"),
    ("rmsnorm", "fp32", "torch-eager", "hf-rmsnorm-fp32"),
    ("rmsnorm", "fp32", "transformers", "hf-rmsnorm-fp32"),
    ("rmsnorm", "fp32", "huggingface", "hf-rmsnorm-fp32"),
    ("rmsnorm", "bf16", "torch-compile", "inductor-rmsnorm"),
    ("layernorm", "fp32", "huggingface", "torch-layernorm"),
    ("layernorm", "fp32", "transformers", "torch-layernorm"),
    ("softmax", "fp32", "huggingface", "torch-softmax-shared"),
    ("softmax", "fp32", "transformers", "torch-softmax-shared"),
    ("pointwise", "bf16", "huggingface", "torch-pointwise-rocm"),
    ("pointwise", "bf16", "transformers-4.50:gelu", "torch-pointwise-rocm"),
    ("softmax", "fp16", "torch-2.1.2", "torch-softmax"),
    ("pointwise", "fp16", "sarathi/vllm", "vllm-activation"),
    ("pointwise", "fp32", "torch-eager(HF fx)", "hf-pointwise"),
    ("pointwise", "fp32", "torch-eager(2.1.0)", "torch-pointwise-rocm"),
    ("quantise", "bf16", "vllm-0.14.0:static_fp8", "vllm-static-quantise"),
    ("quantise", "bf16", "trtllm-1.0.0:torch_ops", "flat-quantise"),
    ("quantise", "bf16", "sglang-0.5.5:sglang", "eager-quantise"),
    ("quantise", "bf16", "vllm-0.14.0:dynamic", "vllm-quantise"),
    ("gemm", "w4a16", "awq", "weight-only"),
    ("gemm", "w4a16", "gptq", "weight-only"),
    ("gemm", "int8", "int8", "cutlass-int8"),
    ("gemm", "fp8_block", "fp8_block", "deepgemm"),
    ("gemm", "fp8", "Fp8ScaledMM", "cutlass-fp8"),
    ("gemm", "fp8", "fp8", "cutlass-fp8"),
    ("gemm", "fp16", "rocblas", "rocblas"),
    ("gemm", "fp32", "rocblas", "rocblas-fp32"),
    ("gemm", "fp32", "hipblas", "rocblas-fp32"),
    ("gemm", "fp32", "mkl", "blas-fp32"),
    ("gemm", "bf16", "aiter", "cublas"),
    ("gemm", "bf16", "flashinfer-0.2", "cublas"),
    ("gemm", "bf16", "sglang-0.5.5:sglang", "cublas"),
    ("gemm", "fp8_block", "vllm-layer", "layer-deepgemm"),
    ("mla", "bf16", "vllm-0.24.0:FLASHMLA", "vllm-mla"),
    ("mla", "bf16", "flashmla", "trtllm-mla"),
    ("mla-layer", "bf16", "vllm-0.24.0:FLASH_ATTN", "vllm-mla-layer-prompt"),
    ("mla-layer", "bf16", "vllm-0.24.0:FLASHINFER_MLA", "vllm-mla-layer"),
    ("mla-prompt", "bf16", "vllm-0.24.0:FLASH_ATTN", "vllm-mla-prompt"),
    ("compressed-layer", "bf16", "trtllm-1.3.0:default", "compressed-latent-layer"),
    ("block-layer", "bf16", "sglang-0.5.14:default", "block-sparse-layer"),
]


def test_every_pattern_finds_a_name_that_is_listed_for_its_kernel():
    """A pattern that no listed name needs is one that nobody knows the reason of."""
    for entry in naming.names():
        listed = [name for *_, name, kernel in (*NAMED, *ALSO_NAMED) if kernel == entry.kernel]
        for pattern in entry.names:
            assert any(re.search(pattern, name) for name in listed), pattern


@pytest.mark.parametrize("entry", naming.callers(), ids=lambda entry: str(entry.changes))
def test_every_pattern_of_callers_finds_a_listed_name(entry):
    operators = entry.operators or ("attention", "gemm")
    listed = [name for op, dtype, name, _ in NAMED if op in operators
              and dtype in (entry.formats or (dtype,))]  # fmt: skip
    for pattern in entry.names:
        assert any(re.search(pattern, name) for name in listed), pattern
        assert not all(re.search(pattern, name) for name in listed), pattern


def test_names_that_are_in_no_table_find_their_kernel():
    for op, dtype, name, expected in ALSO_NAMED:
        variant = "silu_mul" if expected == "vllm-activation" else ""
        found = naming.matching(op, name, dtype, variant)
        assert found.name == expected


def test_names_of_implementations_find_their_class():
    for op, dtype, name, expected in NAMED:
        others = {"cublas-int8": T4, "aiter": MI300X}
        device = others.get(expected, B200 if expected in NEWEST else H100)
        found, said = resolve(op, name, dtype, machine(device))
        assert found.name == expected
        assert (f"modelled as {expected}" in " ".join(said)) == (name != expected)


def test_every_named_row_of_the_measured_runs_has_a_class(measured):
    # New names in the table must be added above, or be known to have no class of their own.
    pandas = pytest.importorskip("pandas", reason="reads the measured runs")
    table = pandas.read_csv(measured / "measured_dev2_core.csv.gz", dtype=str)
    rows = table[["op", "dtype", "implementation"]].drop_duplicates().dropna()
    listed = {(op, dtype, name) for op, dtype, name, _ in NAMED}
    kinds = set(rows.itertuples(index=False, name=None))
    without = {row for row in kinds - listed if row[0] not in ("pointwise", "quantise")}
    assert not without


def test_the_usual_class_follows_the_generation():
    expected = {"t4": "flash2", "a100-sxm4-80gb": "flash2", "h100-sxm": "flash3", "b200": "flash4"}
    found = {slug: usual("attention", "bf16", machine(load(slug))).name for slug in expected}
    assert found == expected
    # The newest kernels take 16 bits at most.
    assert usual("attention", "fp32", machine(H100)).name == "flash2"
    assert usual("gemm", "fp32", machine(H100)).name == "cublas-fp32"
    assert usual("gemm", "nvfp4", machine(B200)).name == "cublas"
    with pytest.raises(
        PerfmodelError, match="h100-sxm has no known kernel of gemm in fp3; it has: "
    ):
        usual("gemm", "fp3", machine(H100))


@pytest.mark.parametrize(
    ("name", "slug", "falls"),
    [
        ("flash3", "a100-sxm4-80gb", "flash2"), ("flash3", "b200", "flash2"),
        ("flash3", "h100-sxm", None), ("flash4", "b200", None),
        ("cudnn-hopper", "t4", "flash2"), ("flash2", "b200", None),
        ("cublas-fp32-turing-batched", "v100-sxm2", "cublas-fp32-volta-batched"),
        ("cublas-fp32-batched", "t4", "cublas-fp32-turing-batched"),
        ("aiter", "mi300x", None), ("aiter", "mi210", "ck-flash"),
        ("ck-flash", "mi210", None), ("ck-flash", "h100-sxm", "fmha-ampere"),
    ],
)  # fmt: skip
def test_a_class_without_its_instructions_falls_back_and_says_so(name, slug, falls):
    op, dtype = (kernel_facts(name).operator, "fp32" if "fp32" in name else "fp16")
    found, said = resolve(op, name, dtype, machine(load(slug)))
    assert found.name == (falls or name)
    assert list(said) == ([f"{name} does not run on {slug}; {falls} taken"] if falls else [])


def test_every_step_of_a_fall_is_said():
    found, said = resolve("attention", "flash4", "fp16", machine(T4))
    assert found.name == "flash2"
    assert said[0].startswith("flash4 ")
    assert said[-1].endswith("does not run on t4; flash2 taken")


def test_an_unknown_implementation_is_said_in_the_assumptions():
    found = predict(Attention(1, 8, 8, 256, 256, 64), H100, implementation="warp-nine")
    said = "implementation 'warp-nine' is not known: a good library's is taken"
    assert said in found.assumptions
    assert found.seconds == predict(Attention(1, 8, 8, 256, 256, 64), H100).seconds
    assert not predict(Attention(1, 8, 8, 256, 256, 64), H100).assumptions


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_a_norm_that_is_written_out_takes_longer_than_a_fused_one(dtype, direction):
    """Every operator of the chain is launched, and reads and writes whole tensors."""
    for rows in (8, 65536):
        problem = Rowwise("rmsnorm", rows, 4096, dtype, direction=direction)
        for harness in ("kernel", "cuda_graph", "do_bench"):
            written, fused = (
                predict(problem, H100, implementation=name, harness=harness).seconds
                for name in ("huggingface", "torch")
            )
            assert written > 1.2 * fused
    plain = Rowwise("layernorm", 4096, 4096, dtype, direction=direction)
    module, own = (predict(plain, H100, implementation=n) for n in ("huggingface", "torch"))
    assert module.seconds == own.seconds


@pytest.mark.parametrize(
    "name", ["torch-2.6.0:rms", "vllm-0.24.0:gate", "aiter:ck", "sarathi/torch", "nobodys"]
)
@pytest.mark.parametrize("op", ["softmax", "layernorm", "rmsnorm", "pointwise", "quantise"])
def test_a_good_librarys_kernel_is_never_taken_for_a_named_one_in_silence(op, name):
    problem = Rowwise(op, 4096, 4096, "bf16", "copy" if op == "pointwise" else "")
    found = predict(problem, H100, implementation=name)
    if found.implementation == "fused-rows":
        assert any(f"{name!r} is not known" in line for line in found.assumptions)
        assert found.known.implementation == "assumed"


def test_products_of_triton_share_reads_of_the_l2_on_hopper_and_do_not_split_k():
    problem = Matmul(4096, 4096, 4096)
    tile = {"m": 128, "n": 128, "k": 64, "warps": 8, "stages": 3}
    hopper, ampere = (
        predict(problem, device, implementation="triton", tile=tile).bytes["l2"]
        for device in (H100, A100)
    )
    assert 0 < 1.9 * hopper < ampere
    triton, library = (predict(problem, H100, implementation=i) for i in ("triton", "cublas"))
    assert triton.seconds > library.seconds
    assert predict(Matmul(64, 64, 2**20), H100, implementation="triton").tile["slices"] == 1
    said = predict(Matmul(64, 64, 64, dtype="w8a16"), H100, implementation="triton").assumptions
    assert said == ("'triton' is not known in w8a16: weight-only taken",)
    unmet = predict(Matmul(64, 64, 64, dtype="w8a16"), H100, implementation="triton")
    assert unmet.known.implementation == "assumed"


def test_strided_batches_of_fp32_have_classes_of_their_own():
    many, one = Matmul(64, 64, 64, 8, "fp32"), Matmul(64, 64, 64, 1, "fp32")
    assert predict(many, A100).implementation == "cublas-fp32-batched"
    assert predict(one, A100).implementation == "cublas-fp32-ampere"
    assert predict(many, H100).implementation == "cublas-fp32-hopper-batched"
    assert predict(one, H100).implementation == "cublas-fp32"
    assert predict(many, T4).implementation == "cublas-fp32-turing-batched"
    assert predict(many, load("v100-sxm2")).implementation == "cublas-fp32-volta-batched"
    assert predict(one, T4).implementation == "cublas-fp32-turing"


@given(m=st.integers(1, 3000), n=st.integers(1, 3000), k=st.integers(64, 40000))
def test_ampere_cuts_fp32_products_as_its_library_does(m, n, k):
    # Tiles of 32 rows or columns for no more than that, and slices that fill two waves at most.
    tile = predict(Matmul(m, n, k, 1, "fp32"), A100).tile
    assert tile["m"] >= 64 or m <= 32
    assert tile["n"] >= 64 or n <= 32
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * tile["slices"]
    assert tile["slices"] == 1 or blocks <= 2 * machine(A100).units


def test_a_class_of_another_operator_is_not_taken():
    assert predict(Rowwise("softmax", 8, 8), H100, implementation="cublas").implementation in (
        "fused-rows", "torch-softmax",
    )  # fmt: skip


def test_an_unknown_class_names_the_nearest():
    with pytest.raises(UnknownName, match="flash2"):
        kernel_facts("flash22")


def test_a_fall_ends_at_a_kernel_that_runs():
    for name in kernels():
        entry = kernel_facts(name)
        for slug in names() if entry.fallback is not None else ():
            here = machine(load(slug))
            found, _ = resolve(entry.operator, name, "fp32", here)
            assert found.runs_on.allows(here.architecture)


def test_menus_go_by_head_dimension():
    entry = kernel_facts("flash3")
    assert entry.menu(64, decode=False) == entry.tiles[64]
    assert entry.menu(80, decode=False) == entry.tiles[96]
    assert entry.menu(4096, decode=False) == entry.tiles[max(entry.tiles)]
    assert entry.decode is not None
    assert entry.menu(64, decode=True) == entry.decode[64]


@pytest.mark.parametrize(("device", "expected"), [(B200, "fmha"), (H100, "fmha-hopper"),
                                                 (A100, "fmha-ampere")])  # fmt: skip
def test_kernels_of_frameworks_go_without_the_copies_of_a_library(device, expected):
    found, _ = resolve("attention", "flashinfer-0.2", "bf16", machine(device))
    assert found.name == expected
    assert not found.regroups
    assert not isinstance(found.cut, EvenCut)


@pytest.mark.parametrize(
    ("dtype", "name", "start", "host"),
    [
        ("w4a16", "trtllm-1.0.0:weight_only_L257/PLUGIN_V2_", (5e-6, 1e-5), None),
        ("w4a16", "vllm:marlin", None, None),
        ("fp8_block", "vllm-0.24.0:CutlassFp8BlockScaledMMKernel", None, (1e-4, 3e-4)),
        ("fp8_block", "vllm-0.24.0:DeepGemmFp8BlockScaledMMKernel", None, (5e-5, 1e-4)),
        ("fp8_block", "trtllm-1.3.0:torch_flow", None, None),
        ("fp8_block", "vllm-0.14.0:vllm_default", None, (5e-5, 1e-4)),
        ("fp8", "vllm-0.14.0:vllm_default", None, None),
    ],
)
def test_runs_that_are_timed_otherwise_are_told_by_name(dtype, name, start, host):
    found, _ = resolve("gemm", name, dtype, machine(H100))
    for seconds, ends in ((found.caller.start_seconds, start), (found.caller.host_seconds, host)):
        assert (seconds is None) == (ends is None)
        assert seconds is None or ends[0] < seconds < ends[1]


@pytest.mark.parametrize("device", [H100, B200])
def test_how_runs_were_timed_stays_where_a_class_falls_back(device):
    found, _ = resolve("gemm", "vllm-0.14.0:vllm_default", "fp8_block", machine(device))
    there = resolve("gemm", "vllm:DeepGemmFp8BlockScaledMMKernel", "fp8_block", machine(device))[0]
    assert found.caller.host_seconds == there.caller.host_seconds
    assert there.caller.host_seconds is not None


@pytest.mark.parametrize(
    ("device", "prefill", "decode"),
    [(B200, "tensorrt-llm", "trtllm-gen"), (H100, "trtllm-hopper", "trtllm-xqa"),
     (A100, "trtllm-mma", "trtllm-xqa")],
)  # fmt: skip
def test_decode_may_be_another_kernel_than_prefill(device, prefill, decode):
    name = "trtllm-1.0.0:torch_flow"
    queries = {"implementation": name}
    assert predict(Attention(1, 8, 8, 256, 256, 64), device, **queries).implementation == prefill
    assert predict(Attention(64, 8, 2, 1, 256, 64), device, **queries).implementation == decode
    found, _ = resolve("attention", name, "bf16", machine(device), decode=True)
    assert (found.caller.packed, found.caller.paged) == (True, True)


def test_block_scales_are_added_up_outside_the_instruction_before_blackwell_alone():
    found = {
        device.slug: resolve("gemm", "deepgemm", "fp8_block", machine(device))[0].promoted
        for device in (H100, B200)
    }
    assert found == {"h100-sxm": True, "b200": False}


@pytest.mark.parametrize(
    ("name", "paged"),
    [("vllm", True), ("vllm-0.14.0:vllm_flash_attn", True), ("sglang-0.4", True), ("flash2", False),
     ("vllm-0.19.0:vllm_vit_flash_attn", False), ("sglang-0.5.11:flash_attention_v3", False)],
)  # fmt: skip
def test_serving_frameworks_find_their_keys_in_pages(name, paged):
    found, _ = resolve("attention", name, "bf16", machine(load("a100-sxm4-80gb")))
    assert found.caller.paged is paged
