"""Compiled from engines/llama.cpp.yaml by `python -m perfmodel.compiled`."""

HASH = "30a7cacded999aed"
DOCUMENT = {
 'engine': 'llama.cpp',
 'aliases': ['llamacpp', 'ggml'],
 'about': 'llama.cpp with layers on one device after another',
 'version': '2023 to 2025',
 'stack': 'llama.cpp',
 'source': 'llama.cpp, src/llama-graph.cpp and ggml/src/ggml-cuda',
 'cache_write': False,
 'residual_norm': False,
 'prefill': 'launches',
 'host': {'source': 'nothing fitted'},
 'cache': {'block': 1, 'share': 1.0, 'of': 'free', 'source': 'llama.cpp: -c is set by the caller'},
 'batching': {
  'tokens': 2048,
  'sequences': 1,
  'continuous': False,
  'source': 'llama.cpp: -b 2048, -ub 512',
 },
}
