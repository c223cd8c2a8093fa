"""Compiled from engines/exllama.yaml by `python -m perfmodel.compiled`."""

HASH = "601c4c712bb60134"
DOCUMENT = {
 'engine': 'exllama',
 'about': 'ExLlama, 4-bit networks, one sequence at a time',
 'version': '2023',
 'stack': 'fastertransformer',
 'source': 'exllama README @3b013cd',
 'prefill': 'launches',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 1,
  'share': 1.0,
  'of': 'free',
  'source': 'ExLlama: max_seq_len is set by the caller',
 },
 'batching': {'tokens': 65536, 'sequences': 1, 'continuous': False, 'source': 'ExLlama: batch 1'},
}
