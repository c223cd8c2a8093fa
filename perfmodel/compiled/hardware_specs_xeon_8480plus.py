"""Compiled from hardware_specs/xeon-8480plus.yaml by `python -m perfmodel.compiled`."""

HASH = "a28805e2198e3ede"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'xeon-8480plus',
 'name': 'Intel Xeon Platinum 8480+ (Sapphire Rapids)',
 'aliases': ['intel-xeon-8480plus', 'xeon-8480', 'xeon-platinum-8480+'],
 'vendor': 'Intel',
 'kind': 'cpu',
 'architecture': 'Sapphire Rapids',
 'launch_year': {'value': 2023, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 56, 'source': ['spr-8480', 'amx-toms', 'sth-8480'], 'status': 'secondary'},
  'unit_name': 'core',
  'clocks': {
   'base': {'value': '2000 MHz', 'source': ['memory'], 'status': 'unverified'},
   'boost': {'value': '3800 MHz', 'source': ['memory'], 'status': 'unverified'},
   'tensor': {
    'value': '2000 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'the base clock, at which the AMX peak is computed',
   },
  },
  'matrix': {
   'bf16': {
    'value': '114.7 TFLOP/s',
    'source': ['amx-toms'],
    'status': 'derived',
    'note': '56 x 1024 op/clk (AMX) x 2.0 GHz',
   },
   'int8': {
    'value': '229.4 TOP/s',
    'source': ['amx-toms'],
    'status': 'derived',
    'note': '56 x 2048 x 2.0 GHz',
   },
  },
  'vector': {
   'fp64': {
    'value': '3.58 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'half of FP32',
   },
   'fp32': {
    'value': '7.17 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '56 x 64 x 2.0 GHz',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 1024, 'int8': 2048},
   'source': ['amx-toms'],
   'status': 'secondary',
   'note': 'AMX',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 32, 'fp32': 64},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per core, a multiply-add counts two',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'DDR5-4800 x8',
   'capacity': {'value': '4096 GB', 'source': ['memory'], 'status': 'unverified', 'note': 'maximum'},
   'bandwidth': {
    'value': '307.2 GB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '8 x 8 B x 4800 MT/s',
   },
  },
  'l2': {
   'label': 'L3',
   'capacity': {'value': '105 MiB', 'source': ['memory'], 'status': 'unverified'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'L2 of one core',
   'capacity_per_unit': {'value': '2048 KiB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth_per_unit': {
    'value': '64 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L2 to L1; about 48 B/clk are sustained',
   },
  },
 },
 'links': {'host': {'name': 'PCIe 5 x80'}},
 'tdp': {'value': '350 W', 'source': ['memory'], 'status': 'unverified'},
 'peak_notes': {'vector': 'computed at the base clock: wide vectors do not hold turbo on all cores'},
 'sources': {
  'amx-toms': 'Sapphire Rapids AMX: 1024 BF16 / 2048 INT8 operations per cycle per core; 56 cores, 8 DDR5 channels. https://www.tomshardware.com/news/intel-fires-up-xeon-max-cpus-gpus-to-rival-amd-nvidia',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'spr-8480': 'lscpu of 2 x Xeon Platinum 8480+: 56 cores per socket, AVX-512, AMX',
  'sth-8480': 'Xeon 8480+: four 14-core tiles, two DDR5 channels each. https://servethehome.com/intel-xeon-max-9480-deep-dive-intel-has-64gb-hbm2e-onboard-like-a-gpu-or-ai-accelerator/3',
 },
}
