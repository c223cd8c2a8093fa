"""Compiled from libraries/vllm.yaml by `python -m perfmodel.compiled`."""

HASH = "6f9eaae6914292c6"
DOCUMENT = {
 'library': 'vLLM',
 'kernels': {
  'cutlass-fp8': {
   'operator': 'gemm',
   'formats': ['fp8'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'runs_on': {'instruction': ['wgmma']},
   'fallback': 'cublas',
   'tiles': {
    64: [[64, 16, 256], [64, 64, 256]],
    128: [[64, 128, 256]],
    1000000000: [[128, 128, 384]],
   },
   'cluster': 2,
   'swizzles': False,
   'splits': [1],
   'source': 'vLLM scaled_mm_sm90_fp8_dispatch.cuh: 64x64x128, 64x128x128 and 128x128x128, operands swapped for few rows, clusters of two row blocks; CUTLASS persistent tile scheduler: raster along the shorter side, no swizzle',
  },
  'cutlass-fp8-block': {
   'operator': 'gemm',
   'formats': ['fp8_block'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'tiles': [[64, 128, 256], [128, 128, 384]],
   'splits': [1],
   'promoted': True,
   'source': 'vLLM cutlass_scaled_mm_blockwise_sm90: 128x128 tiles, scales rearranged by eager operators first',
  },
  'vllm-rmsnorm': {
   'operator': 'rmsnorm',
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 1,
    'most_threads': 1024,
    'passes': 2,
    'load': 1,
    'stages': 2,
   },
   'source': 'vLLM layernorm_kernels.cu: up to 1024 threads a row, one element each, the row read twice',
  },
  'vllm-activation': {
   'operator': 'pointwise',
   'variants': ['silu_mul', 'gelu_mul'],
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 1,
    'most_threads': 1024,
    'passes': 1,
    'load': 1,
    'dependent_ops': 40,
   },
   'accurate': True,
   'source': 'vLLM activation_kernels.cu (act_and_mul_kernel): a block of up to 1024 threads a row, one element a thread at a time',
  },
  'cache-write': {
   'operator': 'pointwise',
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 1,
    'most_threads': 512,
    'passes': 1,
    'load': 8,
    'waits': 2,
   },
   'source': "vLLM cache_kernels.cu (reshape_and_cache_flash_kernel): a block of up to 512 threads a token, copies of 16 bytes; the token's slot, its keys and its values are read one after another",
  },
  'vllm-quantise': {
   'operator': 'quantise',
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 1,
    'least_threads': 1024,
    'most_threads': 1024,
    'passes': 2,
    'load': 1,
   },
   'source': 'vLLM common.cu (dynamic_per_token_scaled_fp8_quant): a block of 1024 threads a row, its maximum first, then the row again',
  },
  'vllm-static-quantise': {
   'operator': 'quantise',
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 16,
    'least_threads': 256,
    'most_threads': 256,
    'passes': 1,
    'load': 16,
    'strided': True,
    'waits': 1,
   },
   'source': 'vLLM csrc/quantization/w8a8/fp8/common.cu (scaled_fp8_quant_kernel_strided): a block of 256 threads a row that stride over loads of 16 elements, whatever its length; the scale, in memory, is read first',
  },
 },
}
