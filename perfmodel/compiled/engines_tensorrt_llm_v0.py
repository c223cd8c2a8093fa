"""Compiled from engines/tensorrt-llm-v0.yaml by `python -m perfmodel.compiled`."""

HASH = "404a466ca55859b9"
DOCUMENT = {
 'engine': 'tensorrt-llm-v0',
 'about': 'TensorRT-LLM before its grouped-query kernels were the usual ones',
 'version': '0.7 to 0.11',
 'until': '0.12',
 'after': 'tensorrt-llm',
 'stack': 'tensorrt-llm',
 'source': 'TensorRT-LLM, docs/source and cpp/tensorrt_llm',
 'prefill': 'launches',
 'all_reduce': 'tensorrt-llm',
 'fitted': ['host.step_us', 'host.sequence_us', 'kernels.reread'],
 'kernels': {
  'reread': 0.2,
  'source': 'the generation kernel (masked multi-head attention) reads keys and values a query head; what its caches do not hold is fitted',
 },
 'host': {
  'step_us': 1634,
  'sequence_us': 11.8,
  'source': 'LLM-Inference-Bench (2411.00136), A100 and H100, static batches',
 },
 'cache': {
  'block': 64,
  'share': 0.9,
  'of': 'free',
  'source': 'TensorRT-LLM, kv_cache_free_gpu_mem_fraction 0.9 (perf-overview 0.95) and tokens_per_block 64 (32 since 1.0)',
 },
 'batching': {
  'tokens': 8192,
  'sequences': 2048,
  'mixed': True,
  'chunked': True,
  'source': 'TensorRT-LLM, trtllm-build --max_num_tokens 8192, --max_batch_size 2048',
 },
}
