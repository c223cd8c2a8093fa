"""Compiled from engines/gpt-fast.yaml by `python -m perfmodel.compiled`."""

HASH = "cd87efebb55c2581"
DOCUMENT = {
 'engine': 'gpt-fast',
 'about': "PyTorch's gpt-fast, one sequence at a time",
 'version': '2023 to 2024',
 'stack': 'gpt-fast',
 'source': 'gpt-fast README and generate.py, @32971d3',
 'all_reduce': 'vllm',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 1,
  'share': 1.0,
  'of': 'free',
  'source': 'gpt-fast: max_seq_length is set by the caller',
 },
 'batching': {
  'tokens': 65536,
  'sequences': 1,
  'continuous': False,
  'source': 'gpt-fast README: batch 1',
 },
}
