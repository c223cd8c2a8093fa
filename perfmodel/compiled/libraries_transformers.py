"""Compiled from libraries/transformers.yaml by `python -m perfmodel.compiled`."""

HASH = "19338692646c6269"
DOCUMENT = {
 'library': 'Hugging Face Transformers',
 'kernels': {
  'hf-pointwise': {
   'operator': 'pointwise',
   'accurate': True,
   'tensors': {'div': 1, 'pow': 1, 'mul': 1, 'where': 1},
   'source': 'transformers modeling_gpt2.py, modeling_bert.py, activations.py: scores over a scalar, powers and three of four products by a scalar, scores where a mask for all heads says so, else a scalar; CUDALoops.cuh',
  },
 },
}
