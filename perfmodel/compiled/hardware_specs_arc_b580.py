"""Compiled from hardware_specs/arc-b580.yaml by `python -m perfmodel.compiled`."""

HASH = "33a170a22c52a1c7"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'arc-b580',
 'name': 'Intel Arc B580 12GB',
 'aliases': ['intel-arc-b580', 'b580'],
 'vendor': 'Intel',
 'kind': 'gpu',
 'architecture': 'Xe2 (Battlemage)',
 'launch_year': {'value': 2024, 'source': ['intel-b580-page'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 20, 'source': ['intel-b580-page'], 'status': 'unverified'},
  'unit_name': 'Xe-core',
  'clocks': {'boost': {'value': '2850 MHz', 'source': ['intel-b580-page'], 'status': 'unverified'}},
  'matrix': {
   'tf32': {
    'value': '58.37 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '116.7 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '116.7 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {'value': '233 TOP/s', 'source': ['intel-b580-page'], 'status': 'unverified'},
   'int4': {
    'value': '466.9 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.912 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '14.59 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '29.18 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
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
   'capacity': {'value': '12 GB', 'source': ['intel-b580-page'], 'status': 'unverified'},
   'bandwidth': {'value': '456 GB/s', 'source': ['intel-b580-page'], 'status': 'unverified'},
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
   'name': 'PCIe 4 x8',
   'bandwidth_per_direction': {'value': '15.5 GB/s', 'source': ['intel-b580-page'], 'status': 'unverified'},
  },
 },
 'tdp': {'value': '190 W', 'source': ['intel-b580-page'], 'status': 'unverified'},
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'intel-b580-page': 'Intel product page of Arc B580, recalled from memory; check before use',
  'memory': 'unverified: from memory',
 },
}
