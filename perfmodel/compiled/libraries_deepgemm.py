"""Compiled from libraries/deepgemm.yaml by `python -m perfmodel.compiled`."""

HASH = "9be5771ff91f6617"
DOCUMENT = {
 'library': 'DeepGEMM',
 'kernels': {
  'deepgemm': {
   'operator': 'gemm',
   'formats': ['fp8_block'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'runs_on': {'instruction': ['wgmma']},
   'fallback': 'deepgemm-blackwell',
   'dispatches': True,
   'tiles': [
    [64, 32, 256],
    [64, 64, 256],
    [64, 128, 256],
    [128, 64, 256],
    [128, 96, 384],
    [128, 128, 384],
    [128, 160, 384],
   ],
   'splits': [1],
   'promoted': True,
   'step_cycles': 240,
   'quantises': True,
   'quantiser': 'group-quantise',
   'source': 'DeepGEMM: block_m 64/128, block_n a multiple of 16 up to 160; two-level fp32 accumulation; in each 128 of k a barrier, four instructions on one accumulator, scales out of shared memory and the addition follow each other, some 240 cycles. TensorRT-LLM (fp8_blockscale_gemm), SGLang and vLLM run it on Hopper',
  },
  'deepgemm-blackwell': {
   'operator': 'gemm',
   'formats': ['fp8_block'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'runs_on': {'instruction': ['tcgen05']},
   'fallback': 'cutlass-fp8-block',
   'tiles': {
    64: [
     [64, 32, 256],
     [64, 64, 256],
     [64, 128, 256],
     [128, 32, 256],
     [128, 64, 256],
     [128, 128, 256],
    ],
    1000000000: [
     [128, 32, 256],
     [128, 64, 256],
     [128, 128, 256],
     [128, 192, 256],
     [128, 256, 256],
     [256, 128, 256],
    ],
   },
   'splits': [1],
   'quantises': True,
   'quantiser': 'group-quantise',
   'prepares': 5,
   'source': 'DeepGEMM on compute capability 10 (sm100.hpp): block_m 128 or 256 and 64 for so few rows, block_n a multiple of 32 up to 256; the instruction takes block scales that are powers of two (UE8M0), so that nothing is added up outside; layout.hpp (transform_sf_into_required_layout): scales of activations are packed by a kernel, those of weights spread over rows (arange, division, index_select) and packed by another, four to a word',
  },
  'vllm-deepgemm': {
   'like': 'deepgemm',
   'fallback': 'deepgemm-blackwell',
   'quantiser': 'vllm-group-quantise',
   'source': "as deepgemm, activations narrowed by vLLM's own kernel",
  },
  'trtllm-deepgemm': {
   'like': 'deepgemm',
   'fallback': 'trtllm-deepgemm-blackwell',
   'source': "TensorRT-LLM linear.py (FP8BlockScalesLinearMethod): fp8_quantize_1x128, then fp8_block_scaling_gemm, which compiles DeepGEMM's kernels",
  },
  'trtllm-deepgemm-blackwell': {
   'like': 'deepgemm-blackwell',
   'prepares': 0,
   'source': 'TensorRT-LLM linear.py (FP8BlockScalesLinearMethod): scales of weights are packed once, when they are loaded, and those of activations by the kernel that narrows them (per_token_quant_and_transform); recalled',
  },
 },
}
