"""Compiled from hardware_specs/epyc-9654.yaml by `python -m perfmodel.compiled`."""

HASH = "94555e1d3ffa7cb5"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'epyc-9654',
 'name': 'AMD EPYC 9654 (Genoa)',
 'aliases': ['amd-epyc-9654'],
 'vendor': 'AMD',
 'kind': 'cpu',
 'architecture': 'Zen 4',
 'launch_year': {'value': 2022, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 96, 'source': ['epyc-sec'], 'status': 'secondary'},
  'unit_name': 'core',
  'clocks': {
   'base': {'value': '2400 MHz', 'source': ['epyc-sec'], 'status': 'secondary'},
   'boost': {'value': '3700 MHz', 'source': ['epyc-sec'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '3.69 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'half of FP32',
   },
   'fp32': {
    'value': '7.37 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '96 x 32 FLOP/clk (two 256-bit FMA, AVX-512 double-pumped) x 2.4 GHz',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 16, 'fp32': 32},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per core, a multiply-add counts two',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'DDR5-4800 x12',
   'capacity': {'value': '6144 GB', 'source': ['memory'], 'status': 'unverified', 'note': 'maximum'},
   'bandwidth': {
    'value': '460.8 GB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '12 x 8 B x 4800 MT/s',
   },
  },
  'l2': {
   'label': 'L3',
   'capacity': {
    'value': '384 MiB',
    'source': ['epyc-sec'],
    'status': 'derived',
    'note': '12 CCD x 32',
   },
   'partitions': {'value': 12, 'source': ['epyc-sec'], 'status': 'derived', 'note': '32 MiB per CCD'},
   'shared_by_all': False,
  },
 },
 'links': {'host': {'name': 'PCIe 5 x128'}},
 'tdp': {'value': '360 W', 'source': ['epyc-sec'], 'status': 'secondary'},
 'peak_notes': {'vector': 'computed at the base clock: wide vectors do not hold turbo on all cores'},
 'sources': {
  'epyc-sec': 'EPYC 9654: 96 cores, 2.4/3.7 GHz, 360 W, 32 MB L3 per CCD. https://llmperf.net/categories/cpu/AMD-EPYC-9000-Genoa-Turin-CPUs',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
 },
}
