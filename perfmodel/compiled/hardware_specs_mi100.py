"""Compiled from hardware_specs/mi100.yaml by `python -m perfmodel.compiled`."""

HASH = "e52f21b8700dcb3a"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi100',
 'name': 'AMD Instinct MI100 32GB',
 'aliases': ['amd-mi100', 'amd-instinct-mi100'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA',
 'launch_year': {'value': 2020, 'source': ['memory'], 'status': 'unverified'},
 'target': 'gfx908',
 'compute': {
  'units': {'value': 120, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {
   'boost': {
    'value': '1502 MHz',
    'source': ['rocm-mi100'],
    'status': 'spec',
    'note': '1.5 GHz; 1502 reproduces 184.6',
   },
  },
  'matrix': {
   'fp32': {'value': '46.1 TFLOP/s', 'source': ['rocm-mi100'], 'status': 'spec'},
   'fp16': {'value': '184.6 TFLOP/s', 'source': ['rocm-mi100'], 'status': 'spec'},
   'bf16': {'value': '92.3 TFLOP/s', 'source': ['rocm-mi100'], 'status': 'spec'},
   'int8': {'value': '184.6 TOP/s', 'source': ['memory'], 'status': 'unverified'},
  },
  'vector': {
   'fp64': {'value': '11.5 TFLOP/s', 'source': ['rocm-mi100'], 'status': 'spec'},
   'fp32': {'value': '23.1 TFLOP/s', 'source': ['rocm-mi100'], 'status': 'spec'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp32': 256, 'fp16': 1024, 'bf16': 512, 'int8': 1024},
   'source': ['rocm-mi100'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 64, 'fp32': 128},
   'source': ['rocm-mi100'],
   'status': 'spec',
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
   'capacity': {'value': '32 GB', 'source': ['rocm-mi100'], 'status': 'spec'},
   'bandwidth': {'value': '1.2288 TB/s', 'source': ['rocm-mi100'], 'status': 'spec'},
  },
  'l2': {
   'capacity': {'value': '8 MiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'max_per_block': {'value': '64 KiB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {'value': '16 KiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2560,
  'max_warps_per_unit': 40,
  'max_threads_per_block': 1024,
  'registers_per_unit': 131072,
  'max_registers_per_thread': 256,
  'source': ['rocm-archspecs', 'memory'],
  'status': 'unverified',
  'note': 'registers from the ROCm documentation, wave limits from memory; max_registers_per_thread counts vector registers per lane',
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric bridge',
   'bandwidth_per_direction': {
    'value': '138 GB/s',
    'source': ['rocm-mi100'],
    'status': 'derived',
    'note': '3 links x 46 GB/s (23 GT/s x 16 bit); per-link 46; hive of 4 cards',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['memory'], 'status': 'unverified'},
 'measured': {
  'hbm_bandwidth': {
   'read': {'value': '1.181 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'write': {'value': '1.102 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'scale': {'value': '1.044 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'triad': {'value': '1.034 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
  },
  'l2_bandwidth': {
   'value': '2.72 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'gpu-l2-cache, <8 MB',
  },
  'l1_bandwidth': {
   'value': '8.67 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'clock reported 800 MHz at start; treat as lower bound',
  },
 },
 'notes': ['BF16 is half the FP16 rate on CDNA1 only.'],
 'sources': {
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi100': 'ROCm MI100 microarchitecture: FLOPS/clock/CU, 1.228 TB/s. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi100.md',
 },
}
