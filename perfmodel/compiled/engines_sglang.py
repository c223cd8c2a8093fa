"""Compiled from engines/sglang.yaml by `python -m perfmodel.compiled`."""

HASH = "60bd1e3b57b89a43"
DOCUMENT = {
 'engine': 'sglang',
 'about': 'SGLang',
 'version': '0.5',
 'stack': 'sglang',
 'source': 'SGLang, python/sglang/srt',
 'cache_write': False,
 'prefill': 'launches',
 'all_reduce': 'sglang',
 'fitted': ['host.step_us', 'host.sequence_us'],
 'host': {
  'step_us': 1629,
  'sequence_us': 20.4,
  'source': 'aiconfigurator, silicon samples of SGLang 0.5 on H100, time between tokens; what its overlapped scheduler leaves',
 },
 'cache': {
  'block': 1,
  'share': 0.88,
  'of': 'memory',
  'source': 'SGLang, server_args.py: page_size 1, mem_fraction_static 0.88',
 },
 'batching': {
  'tokens': 16384,
  'sequences': 2048,
  'chunked': True,
  'source': 'SGLang, server_args.py: max_prefill_tokens 16384',
 },
}
