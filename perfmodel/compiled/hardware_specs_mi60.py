"""Compiled from hardware_specs/mi60.yaml by `python -m perfmodel.compiled`."""

HASH = "3a5130b6796e967e"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi60',
 'name': 'AMD Radeon Instinct MI60 32GB',
 'aliases': ['amd-mi60', 'radeon-instinct-mi60'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'GCN 5.1 (Vega 20)',
 'launch_year': {'value': 2018, 'source': ['techpowerup'], 'status': 'secondary'},
 'target': 'gfx906',
 'compute': {
  'units': {'value': 64, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1200 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1800 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '7.373 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '14.75 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '29.49 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '58.98 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 64, 'fp32': 128, 'fp16': 256, 'int8': 512},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {
    'value': '16 /clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'transcendentals are quarter rate on a 64-lane CU',
   },
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2',
   'capacity': {'value': '32 GB', 'source': ['techpowerup'], 'status': 'secondary'},
   'bandwidth': {
    'value': '1024 GB/s',
    'source': ['techpowerup'],
    'status': 'secondary',
    'note': '4096 bit x 2 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '4 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['memory'], 'status': 'unverified'},
   'max_per_block': {'value': '64 KiB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {'value': '16 KiB', 'source': ['techpowerup'], 'status': 'secondary'},
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2560,
  'max_warps_per_unit': 40,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 256,
  'source': ['memory'],
  'status': 'unverified',
  'note': '256 KiB of vector registers a CU',
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric bridge',
   'bandwidth_per_direction': {
    'value': '100 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'two links of 50 GB/s a direction',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['techpowerup'], 'status': 'secondary'},
 'notes': [
  'No matrix unit: fp16 runs packed on the vector unit, int8 as four-element dot products.',
 ],
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
