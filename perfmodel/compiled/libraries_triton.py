"""Compiled from libraries/triton.yaml by `python -m perfmodel.compiled`."""

HASH = "150462e71c73398b"
DOCUMENT = {
 'library': 'Triton',
 'kernels': {
  'flash-triton': {
   'operator': 'attention',
   'schedule': 'tiled-2',
   'instruction': 'native',
   'overlap': 'warps',
   'share': 0.6,
   'backward': 0.35,
   'head_dims': [16, 32, 64, 128, 256],
   'tiles': {
    64: [[128, 64, 128], [128, 128, 256]],
    128: [[128, 64, 256], [128, 128, 256], [64, 32, 128]],
    256: [[64, 64, 256], [64, 32, 128], [32, 16, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'decode': {
    64: [[64, 64, 128]],
    128: [[64, 64, 128], [64, 32, 128]],
    256: [[64, 32, 128], [32, 16, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'source': "Triton fused attention tutorial: its autotuning menu; tl.dot uses the device's best instruction; that the forward loop keeps 0.6 of the matrix rate was settled by published runs (FlashAttention-2, figures 4 to 7), as 0.35 of the backward one",
  },
  'triton-gemm': {
   'operator': 'gemm',
   'formats': ['fp16', 'bf16', 'tf32', 'fp8', 'int8', 'fp8_block'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'tiles': [
    [128, 256, 256],
    [256, 128, 256],
    [128, 128, 128],
    [128, 64, 128],
    [64, 128, 128],
    [64, 64, 128],
    [128, 32, 128],
    [32, 64, 64],
    [16, 64, 64],
   ],
   'splits': [1],
   'specialises': False,
   'source': "Triton matrix multiplication tutorial and the bundled kernel: a block a tile, in groups that share operands in L2; tl.dot uses the device's best instruction, and blocks neither form clusters nor keep a warp for loading",
  },
  'triton-gemm-fp32': {
   'operator': 'gemm',
   'formats': ['fp32'],
   'instruction': 'vector',
   'overlap': 'pipelined',
   'tiles': [
    [128, 128, 256],
    [128, 64, 128],
    [64, 128, 128],
    [64, 64, 128],
    [32, 64, 64],
    [16, 64, 64],
   ],
   'splits': [1],
   'source': 'the bundled kernel in fp32, input_precision ieee: tl.dot multiplies on the vector unit',
  },
  'fused-rows': {
   'operator': 'rowwise',
   'rows': {
    'held_columns': 32768,
    'elements_per_thread': 16,
    'most_threads': 512,
    'passes': 2,
    'load': 4,
    'power_of_two': True,
    'shuffles': True,
   },
   'source': "the bundled kernels (norms.py, softmax.py): a row stays on chip while it fits, 16 elements of it in a thread, or 32 (Liger's calculate_settings has 8 to 32); tl.sum and tl.max fold by shuffles",
  },
 },
}
