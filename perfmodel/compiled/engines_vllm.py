"""Compiled from engines/vllm.yaml by `python -m perfmodel.compiled`."""

HASH = "c8e58a668fb89cf8"
DOCUMENT = {
 'engine': 'vllm',
 'about': 'vLLM, engine V1',
 'version': '0.8 to 0.24',
 'stack': 'vllm',
 'source': 'vLLM, vllm/v1',
 'cache_write': False,
 'prefill': 'launches',
 'all_reduce': 'vllm',
 'fitted': ['host.step_us', 'host.sequence_us'],
 'host': {
  'step_us': 1878,
  'sequence_us': 38.3,
  'source': 'aiconfigurator, silicon samples of vLLM 0.12 on H100, time between tokens',
 },
 'cache': {
  'block': 16,
  'share': 0.9,
  'of': 'memory',
  'source': 'vLLM, CacheConfig: block_size 16, gpu_memory_utilization 0.9',
 },
 'batching': {
  'tokens': 8192,
  'sequences': 1024,
  'mixed': True,
  'chunked': True,
  'source': 'vLLM V1, max_num_batched_tokens 8192 and max_num_seqs 1024 on Hopper (arg_utils.py)',
 },
}
