"""Compiled from engines/tensorrt-llm.yaml by `python -m perfmodel.compiled`."""

HASH = "bfd4fb4fa05191d3"
DOCUMENT = {
 'engine': 'tensorrt-llm',
 'aliases': ['trtllm', 'trt-llm'],
 'about': "NVIDIA's TensorRT-LLM",
 'version': '0.12 to 1.2',
 'stack': 'tensorrt-llm',
 'source': 'TensorRT-LLM, docs/source and cpp/tensorrt_llm',
 'prefill': 'launches',
 'all_reduce': 'tensorrt-llm',
 'fitted': ['host.step_us', 'host.client_us', 'batching.held'],
 'host': {
  'step_us': 1198,
  'client_us': 62.6,
  'source': 'aiconfigurator, silicon samples of TensorRT-LLM 1.0 on H100, time between tokens',
 },
 'cache': {
  'narrow': True,
  'block': 64,
  'share': 0.9,
  'of': 'free',
  'source': 'TensorRT Model Optimizer writes fp8 checkpoints with an fp8 cache; TensorRT-LLM, kv_cache_free_gpu_mem_fraction 0.9 (perf-overview 0.95) and tokens_per_block 64 (32 since 1.0)',
 },
 'batching': {
  'tokens': 8192,
  'sequences': 2048,
  'held': 1,
  'mixed': True,
  'chunked': True,
  'source': 'TensorRT-LLM, trtllm-build --max_num_tokens 8192, --max_batch_size 2048',
 },
}
