"""Compiled from engines/fastertransformer.yaml by `python -m perfmodel.compiled`."""

HASH = "798bdbb1237291bf"
DOCUMENT = {
 'engine': 'fastertransformer',
 'aliases': ['ft'],
 'about': "NVIDIA's FasterTransformer",
 'version': '5',
 'stack': 'fastertransformer',
 'source': 'FasterTransformer, docs/gpt_guide.md @df4a753',
 'prefill': 'launches',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 1,
  'share': 1.0,
  'of': 'free',
  'source': 'FasterTransformer: the cache is laid out for batch and length',
 },
 'batching': {
  'tokens': 262144,
  'sequences': 4096,
  'continuous': False,
  'source': 'FasterTransformer: static batches',
 },
}
