"""Compiled from engines/ideal.yaml by `python -m perfmodel.compiled`."""

HASH = "e618df44ea1f8862"
DOCUMENT = {
 'engine': 'ideal',
 'about': 'kernels of a good library after each other, a host that takes no time',
 'version': 'any',
 'stack': 'ideal',
 'source': 'a bound: what no engine beats on the same kernels',
 'all_reduce': 'vllm',
 'host': {'source': 'a bound'},
 'cache': {'block': 1, 'share': 1.0, 'of': 'free', 'source': 'a bound'},
 'batching': {
  'tokens': 16384,
  'sequences': 65536,
  'mixed': True,
  'chunked': True,
  'source': 'a bound',
 },
}
