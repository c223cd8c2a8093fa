"""Compiled from hardware_specs/m4-max.yaml by `python -m perfmodel.compiled`."""

HASH = "2b1af03d64dd1e46"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'm4-max',
 'name': 'Apple M4 Max (40-core GPU)',
 'aliases': ['apple-m4-max'],
 'vendor': 'Apple',
 'kind': 'gpu',
 'architecture': 'Apple GPU',
 'launch_year': {'value': 2024, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 40,
   'source': ['apple-sec'],
   'status': 'secondary',
   'note': 'GPU cores, as sold',
  },
  'unit_name': 'GPU core',
  'clocks': {
   'boost': {
    'value': '1660 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': 'fp32 peak over cores and 128 multiply-adds per clock; Apple states none',
   },
  },
  'vector': {
   'fp32': {'value': '17 TFLOP/s', 'source': ['memory'], 'status': 'unverified'},
   'fp16': {
    'value': '34 TFLOP/s',
    'source': ['llm-calc'],
    'status': 'secondary',
    'note': 'best-effort estimate',
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
   'technology': 'LPDDR5X unified',
   'capacity': {'value': '128 GB', 'source': ['llm-calc'], 'status': 'secondary'},
   'bandwidth': {'value': '546 GB/s', 'source': ['llm-calc'], 'status': 'secondary'},
  },
 },
 'notes': ['Low confidence.'],
 'sources': {
  'apple-sec': 'Third-party pages: M3 Ultra 819 GB/s and about 28 TFLOP/s, M4 Max 546 GB/s; Apple publishes no FLOP/s',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
 },
}
