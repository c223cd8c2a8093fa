"""Compiled from engines/tinychat.yaml by `python -m perfmodel.compiled`."""

HASH = "d57852bef82c9171"
DOCUMENT = {
 'engine': 'tinychat',
 'about': 'TinyChat of AWQ, one sequence at a time',
 'version': '2023 to 2024',
 'stack': 'vllm',
 'source': 'llm-awq, tinychat/README.md @d6e797a: fused attention, 4-bit products of its own; Python from token to token',
 'prefill': 'eager',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 1,
  'share': 1.0,
  'of': 'free',
  'source': 'TinyChat: max_seq_len is set by the caller',
 },
 'batching': {'tokens': 65536, 'sequences': 1, 'continuous': False, 'source': 'TinyChat: batch 1'},
}
