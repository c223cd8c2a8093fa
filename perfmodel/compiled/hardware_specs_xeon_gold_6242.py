"""Compiled from hardware_specs/xeon-gold-6242.yaml by `python -m perfmodel.compiled`."""

HASH = "f0ab2af50a50eede"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'xeon-gold-6242',
 'name': 'Intel Xeon Gold 6242 (Cascade Lake)',
 'aliases': ['intel-xeon-gold-6242', 'xeon-6242', 'gold-6242'],
 'vendor': 'Intel',
 'kind': 'cpu',
 'architecture': 'Cascade Lake',
 'launch_year': {'value': 2019, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 16, 'source': ['lscpu-6242'], 'status': 'measured'},
  'unit_name': 'core',
  'clocks': {
   'base': {'value': '2800 MHz', 'source': ['lscpu-6242'], 'status': 'measured'},
   'boost': {'value': '3900 MHz', 'source': ['lscpu-6242'], 'status': 'measured'},
  },
  'vector': {
   'fp64': {
    'value': '1.43 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'half of FP32',
   },
   'fp32': {
    'value': '2.87 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '16 cores x 64 FLOP/clk (two AVX-512 FMA) x 2.8 GHz; AVX-512 heavy clock is lower',
   },
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
   'technology': 'DDR4-2933 x6',
   'capacity': {'value': '1024 GB', 'source': ['memory'], 'status': 'unverified', 'note': 'maximum'},
   'bandwidth': {
    'value': '140.8 GB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '6 x 8 B x 2933 MT/s',
   },
  },
  'l2': {
   'label': 'L3',
   'capacity': {'value': '22 MiB', 'source': ['lscpu-6242'], 'status': 'measured'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'L2 of one core',
   'capacity_per_unit': {'value': '1024 KiB', 'source': ['lscpu-6242'], 'status': 'measured'},
   'bandwidth_per_unit': {
    'value': '64 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L2 to L1; about 48 B/clk are sustained',
   },
   'l1_capacity_per_unit': {'value': '32 KiB', 'source': ['lscpu-6242'], 'status': 'measured'},
  },
 },
 'tdp': {'value': '150 W', 'source': ['memory'], 'status': 'unverified'},
 'measured': {
  'hbm_bandwidth': {
   'stream': {
    'value': '91 GB/s',
    'source': ['mem-6242'],
    'status': 'derived',
    'note': '365 GB/s over four sockets, NUMA-local: 65% of 140.8',
   },
  },
 },
 'peak_notes': {'vector': 'computed at the base clock: wide vectors do not hold turbo on all cores'},
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'lscpu-6242': 'lscpu of Xeon Gold 6242: 16 cores, 2.8 GHz, max 3.9 GHz, L1d 32K, L2 1024K, L3 22528K',
  'mem-6242': '4 x Xeon Gold 6242, DDR4-2933: 365 GB/s NUMA-local measured for four sockets',
  'memory': 'unverified: from memory',
 },
}
