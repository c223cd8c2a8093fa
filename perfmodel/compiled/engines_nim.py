"""Compiled from engines/nim.yaml by `python -m perfmodel.compiled`."""

HASH = "993e2872ed55d37f"
DOCUMENT = {
 'engine': 'nim',
 'about': 'NVIDIA NIM, TensorRT-LLM behind a web server',
 'version': '1',
 'stack': 'tensorrt-llm',
 'source': 'NVIDIA NIM for LLMs, performance page, release 1.8.0',
 'fitted': ['host.step_us'],
 'prefill': 'launches',
 'all_reduce': 'tensorrt-llm',
 'host': {
  'step_us': 900,
  'source': 'set by eye to the rows of one client on the NIM 1.8.0 performance page, H100: no least squares, and no other table to test it on',
 },
 'cache': {
  'narrow': True,
  'block': 64,
  'share': 0.9,
  'of': 'free',
  'source': 'TensorRT Model Optimizer writes fp8 checkpoints with an fp8 cache; TensorRT-LLM, kv_cache_free_gpu_mem_fraction 0.9 and tokens_per_block 64',
 },
 'batching': {
  'tokens': 8192,
  'sequences': 2048,
  'mixed': True,
  'chunked': True,
  'source': 'TensorRT-LLM, trtllm-build --max_num_tokens 8192, --max_batch_size 2048',
 },
}
