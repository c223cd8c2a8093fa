"""Compiled from hardware_specs/m3-ultra.yaml by `python -m perfmodel.compiled`."""

HASH = "62d1870a010e4c54"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'm3-ultra',
 'name': 'Apple M3 Ultra (80-core GPU)',
 'aliases': ['apple-m3-ultra'],
 'vendor': 'Apple',
 'kind': 'gpu',
 'architecture': 'Apple GPU',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 80,
   'source': ['apple-sec'],
   'status': 'secondary',
   'note': 'GPU cores, as sold',
  },
  'unit_name': 'GPU core',
  'clocks': {
   'boost': {
    'value': '1367 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': 'fp32 peak over cores and 128 multiply-adds per clock; Apple states none',
   },
  },
  'vector': {
   'fp32': {
    'value': '28 TFLOP/s',
    'source': ['apple-sec'],
    'status': 'secondary',
    'note': '~28 FP32/FP16 shader rate; llm-calc prints 114.7 FP16, not credible',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp32': 256},
   'source': ['memory'],
   'status': 'unverified',
   'note': '128 lanes per core',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'LPDDR5 unified',
   'capacity': {'value': '512 GB', 'source': ['memory'], 'status': 'unverified', 'note': 'maximum'},
   'bandwidth': {'value': '819 GB/s', 'source': ['apple-sec'], 'status': 'secondary'},
  },
 },
 'notes': ['Low confidence. No tensor cores before M5 GPUs.'],
 'sources': {
  'apple-sec': 'Third-party pages: M3 Ultra 819 GB/s and about 28 TFLOP/s, M4 Max 546 GB/s; Apple publishes no FLOP/s',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
 },
}
