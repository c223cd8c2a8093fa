"""Compiled from libraries/inductor.yaml by `python -m perfmodel.compiled`."""

HASH = "bb14ae77c1f09278"
DOCUMENT = {
 'library': 'PyTorch Inductor',
 'kernels': {
  'inductor-layernorm': {
   'operator': 'layernorm',
   'rows': {
    'held_columns': 1024,
    'elements_per_thread': 4,
    'most_threads': 512,
    'passes': 2,
    'load': 4,
    'stages': 2,
    'shuffles': True,
    'again_vector_ops': 8,
    'again_special_ops': 1,
   },
   'accurate': True,
   'cut': {'kernels': 3, 'streams': 2},
   'cut_columns': 8192,
   'cut_rows': 2,
   'source': "PyTorch 2, torch/_inductor: choices.py (persistent reductions), ir.py (Reduction.num_splits), runtime/triton_heuristics.py (contiguous reductions of 2048); moments by Welford's update of tiles (differences, count, a division to the last digit, three selections), the row a second time: recalled from memory",
  },
  'inductor-rmsnorm': {
   'operator': 'rmsnorm',
   'rows': {
    'held_columns': 1024,
    'elements_per_thread': 4,
    'most_threads': 512,
    'passes': 2,
    'load': 4,
    'stages': 2,
    'shuffles': True,
   },
   'cut': {'kernels': 3, 'streams': 2},
   'cut_columns': 8192,
   'cut_rows': 2,
   'source': 'as inductor-layernorm, whose sum of squares is a plain one',
  },
  'inductor-softmax': {
   'operator': 'softmax',
   'rows': {
    'held_columns': 1024,
    'elements_per_thread': 4,
    'most_threads': 512,
    'passes': 3,
    'load': 4,
    'stages': 2,
    'shuffles': True,
   },
   'cut': {'kernels': 5, 'streams': 3},
   'cut_columns': 8192,
   'cut_rows': 2,
   'source': 'as inductor-layernorm, but maximum and sum of exponentials are reductions of their own',
  },
 },
}
