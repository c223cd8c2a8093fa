"""Compiled from engines/deepspeed.yaml by `python -m perfmodel.compiled`."""

HASH = "902386839416abdd"
DOCUMENT = {
 'engine': 'deepspeed',
 'aliases': ['deepspeed-mii', 'deepspeed-fastgen', 'fastgen'],
 'about': 'DeepSpeed-FastGen under MII',
 'version': '0.2',
 'stack': 'vllm',
 'source': 'DeepSpeed-FastGen (2401.08671): blocked KV cache, Dynamic SplitFuse',
 'cache_write': False,
 'prefill': 'eager',
 'fitted': ['host.step_us', 'host.sequence_us'],
 'host': {
  'step_us': 5500,
  'sequence_us': 128,
  'source': 'LLM-Inference-Bench (2411.00136), A100, static batches',
 },
 'cache': {
  'block': 64,
  'share': 0.9,
  'of': 'free',
  'source': 'DeepSpeed, inference/v2: blocks of 64 to 128 tokens',
 },
 'batching': {
  'tokens': 2048,
  'sequences': 512,
  'mixed': True,
  'chunked': True,
  'source': 'DeepSpeed, inference/v2, state manager: max_ragged_batch_size 768 to 2048, 512 sequences',
 },
}
