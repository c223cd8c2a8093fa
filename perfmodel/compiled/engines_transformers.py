"""Compiled from engines/transformers.yaml by `python -m perfmodel.compiled`."""

HASH = "2ffe69049a3987b2"
DOCUMENT = {
 'engine': 'transformers',
 'aliases': ['hf-eager', 'huggingface'],
 'about': 'Hugging Face Transformers, operator by operator',
 'version': '4',
 'stack': 'eager',
 'source': 'transformers, modeling_llama.py, generation/utils.py',
 'residual_norm': False,
 'cache_write': False,
 'prefill': 'eager',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 1,
  'share': 1.0,
  'of': 'free',
  'source': 'transformers, DynamicCache: grows by concatenation',
 },
 'batching': {
  'tokens': 262144,
  'sequences': 4096,
  'continuous': False,
  'source': 'transformers: static batches',
 },
}
