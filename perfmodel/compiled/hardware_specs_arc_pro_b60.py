"""Compiled from hardware_specs/arc-pro-b60.yaml by `python -m perfmodel.compiled`."""

HASH = "f889658ea8837189"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'arc-pro-b60',
 'name': 'Intel Arc Pro B60 24GB',
 'aliases': ['intel-arc-pro-b60', 'b60'],
 'vendor': 'Intel',
 'kind': 'gpu',
 'architecture': 'Xe2 (Battlemage)',
 'launch_year': {'value': 2025, 'source': ['technical-city'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 20,
   'source': ['technical-city'],
   'status': 'secondary',
   'note': '2560 lanes / 128',
  },
  'unit_name': 'Xe-core',
  'clocks': {
   'base': {'value': '2000 MHz', 'source': ['technical-city'], 'status': 'secondary'},
   'boost': {'value': '2400 MHz', 'source': ['technical-city'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '49.15 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {'value': '98.3 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'bf16': {'value': '98.3 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'int8': {'value': '196.6 TOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'int4': {'value': '393.2 TOP/s', 'source': ['hmc'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '0.768 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {'value': '12.29 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'fp16': {'value': '24.58 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 1024, 'fp16': 2048, 'bf16': 2048, 'int8': 4096, 'int4': 8192},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per Xe-core, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 16, 'fp32': 256, 'fp16': 512},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per Xe-core, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {
    'value': '32 /clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '4 a clock for each of 8 vector engines',
   },
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR6',
   'capacity': {'value': '24 GB', 'source': ['technical-city'], 'status': 'secondary'},
   'bandwidth': {'value': '456 GB/s', 'source': ['technical-city'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {
    'value': '18 MiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'tables that print 4 or 10 MB are wrong',
   },
   'shared_by_all': True,
  },
  'shared': {
   'label': 'SLM and L1',
   'capacity_per_unit': {
    'value': '256 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L1 and shared local memory together',
   },
   'max_per_block': {'value': '128 KiB', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x8',
   'bandwidth_per_direction': {
    'value': '31.5 GB/s',
    'source': ['technical-city'],
    'status': 'derived',
    'note': 'half of 16 lanes',
   },
  },
 },
 'tdp': {
  'value': '200 W',
  'source': ['technical-city'],
  'status': 'secondary',
  'note': '120 to 200 W',
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'memory': 'unverified: from memory',
  'technical-city': 'technical.city card pages, derived from TechPowerUp. https://technical.city/en/video',
 },
}
