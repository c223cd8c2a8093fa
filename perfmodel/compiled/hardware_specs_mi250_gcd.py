"""Compiled from hardware_specs/mi250-gcd.yaml by `python -m perfmodel.compiled`."""

HASH = "4c8f21f8d9ebc51b"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi250-gcd',
 'name': 'AMD Instinct MI250X, ONE GCD (half the module) 64GB',
 'aliases': ['amd-mi250x-gcd', 'mi250', 'mi250x', 'mi250x-gcd'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA2',
 'launch_year': {'value': 2021, 'source': ['memory'], 'status': 'unverified'},
 'target': 'gfx90a',
 'compute': {
  'units': {'value': 110, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1700 MHz', 'source': ['rocm-mi250'], 'status': 'spec'}},
  'matrix': {
   'fp64': {
    'value': '47.85 TFLOP/s',
    'source': ['mi250x-sec'],
    'status': 'secondary',
    'note': 'module 95.7',
   },
   'fp32': {'value': '47.85 TFLOP/s', 'source': ['mi250x-sec'], 'status': 'secondary'},
   'fp16': {
    'value': '191.5 TFLOP/s',
    'source': ['mi250x-sec', 'ml-engineering', 'torchtitan-peak'],
    'status': 'secondary',
    'note': 'module 383',
   },
   'bf16': {
    'value': '191.5 TFLOP/s',
    'source': ['mi250x-sec', 'ml-engineering'],
    'status': 'secondary',
   },
   'int8': {
    'value': '191.5 TOP/s',
    'source': ['mi250x-sec', 'ml-engineering'],
    'status': 'secondary',
   },
  },
  'vector': {
   'fp64': {
    'value': '23.95 TFLOP/s',
    'source': ['mi250x-sec'],
    'status': 'secondary',
    'note': 'module 47.9',
   },
   'fp32': {'value': '23.95 TFLOP/s', 'source': ['mi250x-sec'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp64': 256, 'fp32': 256, 'fp16': 1024, 'bf16': 1024, 'int8': 1024},
   'source': ['rocm-mi250'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 128},
   'source': ['rocm-mi250'],
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
   'technology': 'HBM2e',
   'capacity': {
    'value': '64 GB',
    'source': ['rocm-archspecs'],
    'status': 'spec',
    'note': 'module 128',
   },
   'bandwidth': {
    'value': '1.6384 TB/s',
    'source': ['rocm-mi250', 'mi250x-sec'],
    'status': 'spec',
    'note': 'module 3276.8',
   },
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
  'max_threads_per_unit': 2048,
  'max_warps_per_unit': 32,
  'max_threads_per_block': 1024,
  'registers_per_unit': 131072,
  'max_registers_per_thread': 512,
  'source': ['rocm-archspecs', 'memory'],
  'status': 'unverified',
  'note': 'registers from the ROCm documentation, wave limits from memory; max_registers_per_thread counts vector registers per lane',
 },
 'latency': {
  'l1': {
   'value': '125 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on MI210',
  },
  'l2': {
   'value': '238 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on MI210',
  },
  'hbm': {
   'value': '660 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on MI210',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'xGMI',
   'bandwidth_per_direction': {
    'value': '350 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'module, 7 links x 50; GCD-GCD in package: 4 links x 50 = 200 GB/s per direction (rocm-mi250)',
   },
  },
 },
 'tdp': {
  'value': '280 W',
  'source': ['ml-engineering'],
  'status': 'derived',
  'note': 'half of 560 W peak module TBP (500 W TDP)',
 },
 'measured': {
  'l2_bandwidth': {
   'value': '5.1 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'MI210 (same die)',
  },
 },
 'notes': [
  'Software sees two devices. A single kernel never spans both GCDs: use these per-GCD numbers.',
 ],
 'sources': {
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'memory': 'unverified: from memory',
  'mi250x-sec': 'MI250X/MI250 announcement table. https://zexron.com/amd-mi250-x-aldebaran-as-mcm-with-up-to-479-teraflop-s-and-560-watt-tdp',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi250': 'ROCm MI250 microarchitecture: FLOPS/clock/CU, 1.7 GHz, 1.6 TB/s per GCD, IF link 50 GB/s per direction. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi250.md',
  'torchtitan-peak': 'torchtitan utils: Max 1550 512 operations/clk/EU at 1300 MHz, MI250X 191.5 per GCD',
 },
}
