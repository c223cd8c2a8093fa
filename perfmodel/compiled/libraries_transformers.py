"""Compiled from libraries/transformers.yaml by `python -m perfmodel.compiled`."""

HASH = "be0b21a0bac9d8b7"
DOCUMENT = {
 'library': 'Hugging Face Transformers',
 'kernels': {
  'hf-pointwise': {
   'operator': 'pointwise',
   'accurate': True,
   'tensors': {'div': 1, 'pow': 1, 'mul': 1, 'where': 1},
   'compiled': {'div': [10, 40, 1], 'where': [2, 50, 0]},
   'source': "transformers modeling_gpt2.py, modeling_bert.py, activations.py: scores over a scalar, powers and three of four products by a scalar, scores where a mask for all heads says so, else a scalar; CUDALoops.cuh. The scalar of a division and the mask are tensors of fewer elements, so that strides differ and each element's offset is computed, one at a time (launch_legacy_kernel): 40 to 50 operations, settled by published runs",
  },
  'hf-rmsnorm': {
   'operator': 'rmsnorm',
   'types': ['fp16', 'bf16'],
   'chain': {
    'steps': [
     ['data', 'fp32', 0],
     ['fp32', 'fp32', 0],
     ['fp32', 'fp32', 0],
     ['fp32', 'fp32', 0],
     ['fp32', 'data', 0],
     ['data', 'data', 0],
    ],
   },
   'source': "transformers modeling_llama.py (LlamaRMSNorm) and PyTorch's rms_norm before 2.8: to fp32, squares, their means, product with the reciprocal root, back to the type, product with the weights",
  },
  'hf-rmsnorm-fp32': {
   'operator': 'rmsnorm',
   'chain': {
    'steps': [['data', 'data', 0], ['data', 'data', 0], ['data', 'data', 0], ['data', 'data', 0]],
   },
   'source': 'as hf-rmsnorm, where values are of fp32 as they are, so that neither copy is made',
  },
 },
}
