"""Compiled from libraries/pytorch.yaml by `python -m perfmodel.compiled`."""

HASH = "8b685cb6658d5478"
DOCUMENT = {
 'library': 'PyTorch',
 'kernels': {
  'eager': {
   'operator': 'attention',
   'schedule': 'standard',
   'source': "FlashAttention (2205.14135) Algorithm 0, by the framework's own operators: torch's batched matmul, softmax and maps",
  },
  'cpu-blocked': {
   'operator': 'attention',
   'schedule': 'tiled-2',
   'instruction': 'native',
   'stages': 1,
   'tiles': {
    64: [[32, 512, 1], [1, 512, 1]],
    128: [[32, 512, 1], [1, 512, 1]],
    256: [[32, 512, 1], [1, 512, 1]],
    512: [[32, 256, 1], [1, 256, 1]],
   },
   'decode': {64: [[1, 512, 1]], 128: [[1, 512, 1]], 256: [[1, 512, 1]], 512: [[1, 256, 1]]},
   'source': 'PyTorch FlashAttentionKernel.cpp: query blocks of 32 by 512 keys; one row where there is one query',
  },
  'torch-softmax': {
   'operator': 'softmax',
   'rows': {
    'held_columns': 1024,
    'elements_per_thread': 8,
    'most_threads': 1024,
    'passes': 3,
    'load': 4,
    'wide': True,
    'power_of_two': True,
    'held_load': 1,
    'special_ops': 1,
    'again_vector_ops': 1,
    'again_special_ops': 1,
   },
   'accurate': True,
   'gradient_product': True,
   'source': 'PyTorch SoftMax.cu (SoftMax_getBlockSize, cunn_SoftMaxForward, ilpReduce), PersistentSoftmax.cuh',
  },
  'torch-layernorm': {
   'operator': 'layernorm',
   'rows': {
    'held_columns': 0,
    'elements_per_thread': 1,
    'least_threads': 128,
    'most_threads': 128,
    'passes': 2,
    'load': 4,
    'dependent_ops': 24,
    'vector_ops': 2,
    'special_ops': 1,
    'folded_vector_ops': 11,
    'folded_special_ops': 1,
   },
   'accurate': True,
   'source': "PyTorch layer_norm_kernel.cu (vectorized_layer_norm_kernel): 128 threads a row, moments by Welford's online update, then the row again",
  },
  'torch-pointwise': {
   'operator': 'pointwise',
   'accurate': True,
   'compiled': {'gelu': [20, 11.5, 1], 'pow': [56, 33, 6], 'pow_scalar': [53, 30, 5.25]},
   'source': 'PyTorch CUDALoops.cuh: flattened, 128 threads, four elements each in one load',
  },
  'torch-pointwise-rocm': {
   'like': 'torch-pointwise',
   'compiled': {'gelu': [55, 4, 2], 'pow': [160, 24, 4], 'pow_scalar': [160, 24, 4]},
   'runs_on': {'instruction': ['mfma']},
   'fallback': 'torch-pointwise',
   'dispatches': True,
   'source': 'PyTorch CUDALoops.cuh compiled by HIP; ROCm device libraries, powF.cl and erfF.cl, of some 200 and 70 instructions: settled by published runs (MI210)',
  },
 },
}
