"""Compiled from engines/tensorrt-llm-session.yaml by `python -m perfmodel.compiled`."""

HASH = "e2a0984abdd52595"
DOCUMENT = {
 'engine': 'tensorrt-llm-session',
 'about': "TensorRT-LLM's first releases, timed by their C++ session benchmark",
 'version': '0.5 to 0.6',
 'until': '0.7',
 'after': 'tensorrt-llm-v0',
 'stack': 'tensorrt-llm',
 'source': 'TensorRT-LLM 0.6.1, docs/source/performance.md: gptSessionBenchmark, no Python between steps',
 'prefill': 'launches',
 'all_reduce': 'tensorrt-llm',
 'host': {'source': 'nothing fitted'},
 'cache': {
  'block': 64,
  'share': 0.9,
  'of': 'free',
  'source': 'TensorRT-LLM 0.6, kv_cache_free_gpu_mem_fraction 0.9 and tokens_per_block 64',
 },
 'batching': {
  'tokens': 8192,
  'sequences': 2048,
  'mixed': True,
  'chunked': True,
  'source': 'TensorRT-LLM, trtllm-build --max_num_tokens 8192, --max_batch_size 2048',
 },
}
