"""Compiled from libraries/transformers.yaml by `python -m perfmodel.compiled`."""

HASH = "2faefc8a0a27025a"
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
 },
}
