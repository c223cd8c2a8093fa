"""Compiled from hardware_specs/gc200.yaml by `python -m perfmodel.compiled`."""

HASH = "a3409e45f06a5a3c"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gc200',
 'name': 'Graphcore Colossus Mk2 GC200 IPU',
 'aliases': ['graphcore-gc200', 'ipu-gc200'],
 'vendor': 'Graphcore',
 'kind': 'accelerator',
 'architecture': 'Colossus Mk2',
 'launch_year': {'value': 2020, 'source': ['gc200-sec'], 'status': 'secondary'},
 'compute': {
  'units': {'value': 1472, 'source': ['gc200-sec'], 'status': 'secondary'},
  'unit_name': 'tile',
  'clocks': {'boost': {'value': '1330 MHz', 'source': ['gc200-sec'], 'status': 'secondary'}},
  'matrix': {
   'fp16': {
    'value': '250 TFLOP/s',
    'source': ['gc200-sec'],
    'status': 'secondary',
    'note': '"AI-Float" FP16.16; one source says the 250 includes sparsity, another gives 62.4 for plain FP16',
   },
  },
  'vector': {'fp32': {'value': '62.5 TFLOP/s', 'source': ['gc200-sec'], 'status': 'secondary'}},
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 128},
   'source': ['formula'],
   'status': 'derived',
   'note': 'peak over tiles and clock',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp32': 32},
   'source': ['formula'],
   'status': 'derived',
   'note': 'peak over tiles and clock',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'on-chip SRAM',
   'capacity': {'value': '0.9 GB', 'source': ['gc200-sec'], 'status': 'secondary'},
   'bandwidth': {'value': '47.5 TB/s', 'source': ['gc200-sec'], 'status': 'secondary'},
  },
 },
 'links': {
  'scale_up': {
   'name': 'IPU-Link',
   'bandwidth_per_direction': {
    'value': '160 GB/s',
    'source': ['gc200-sec'],
    'status': 'derived',
    'note': '320 GB/s aggregate, assumed bidirectional',
   },
  },
 },
 'tdp': {'value': '185 W', 'source': ['memory'], 'status': 'unverified'},
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'gc200-sec': 'Third-party tables of the GC200: 1472 tiles, 900 MB, 47.5 TB/s, 250 TFLOP/s FP16, 62.5 FP32, 1.33 GHz',
  'memory': 'unverified: from memory',
 },
}
