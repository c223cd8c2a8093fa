"""Compiled from libraries/aiter.yaml by `python -m perfmodel.compiled`."""

HASH = "11af6c3bebff4f65"
DOCUMENT = {
 'library': 'AITER',
 'kernels': {
  'aiter': {
   'like': 'fmha-ampere',
   'source': "AITER: FlashAttention-2's order by composable kernels for AMD, query heads of a group in one tile",
  },
 },
}
