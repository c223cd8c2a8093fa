"""Compiled from engines/vllm-v0.yaml by `python -m perfmodel.compiled`."""

HASH = "8c000efa03d7c25e"
DOCUMENT = {
 'engine': 'vllm-v0',
 'about': 'vLLM before its engine V1, of 2023 and 2024',
 'version': '0.2 to 0.7',
 'until': '0.8',
 'after': 'vllm',
 'stack': 'vllm',
 'source': 'vLLM 0.5, vllm/engine',
 'cache_write': False,
 'prefill': 'eager',
 'all_reduce': 'vllm',
 'fitted': ['host.step_us', 'host.sequence_us', 'host.sharing_us'],
 'host': {
  'step_us': 1818,
  'sequence_us': 76.3,
  'sharing_us': 985,
  'source': 'LLM-Inference-Bench (2411.00136), A100 and H100, static batches; workers of several devices are told each step by messages (vLLM 0.5, multiproc_gpu_executor.py)',
 },
 'cache': {
  'block': 16,
  'share': 0.9,
  'of': 'memory',
  'source': 'vLLM 0.5, CacheConfig: block_size 16, gpu_memory_utilization 0.9',
 },
 'batching': {
  'tokens': 4096,
  'sequences': 256,
  'chunked': False,
  'source': "vLLM 0.5, SchedulerConfig: max_num_seqs 256, max_num_batched_tokens at least the model's length",
 },
}
