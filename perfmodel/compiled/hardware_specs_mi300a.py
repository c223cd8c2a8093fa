"""Compiled from hardware_specs/mi300a.yaml by `python -m perfmodel.compiled`."""

HASH = "7ebb6273f5ba7019"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi300a',
 'name': 'AMD Instinct MI300A 128GB',
 'aliases': ['amd-mi300a', 'amd-instinct-mi300a'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA3',
 'launch_year': {'value': 2023, 'source': ['memory'], 'status': 'unverified'},
 'target': 'gfx942',
 'compute': {
  'units': {'value': 228, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {
   'boost': {
    'value': '2100 MHz',
    'source': ['rocm-mi300'],
    'status': 'derived',
    'note': "as MI300X; AMD's 980.6 TFLOP/s of 16 bits follows from it",
   },
  },
  'matrix': {
   'fp64': {
    'value': '122.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '122.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'tf32': {
    'value': '490.3 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '980.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '980.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '1961 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '1961 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '61.29 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '122.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {
    'fp64': 256,
    'fp32': 256,
    'tf32': 1024,
    'fp16': 2048,
    'bf16': 2048,
    'fp8': 4096,
    'int8': 4096,
   },
   'source': ['rocm-mi300'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 256},
   'source': ['rocm-mi300'],
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
   'technology': 'HBM3',
   'capacity': {'value': '128 GB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {'value': '5.3 TB/s', 'source': ['sth-mi300'], 'status': 'secondary'},
  },
  'llc': {
   'label': 'Infinity Cache',
   'capacity': {'value': '256 MiB', 'source': ['rocm-archspecs', 'ml-engineering'], 'status': 'spec'},
   'bandwidth': {
    'value': '17.2 TB/s',
    'source': ['cdna3-wp', 'sth-mi300'],
    'status': 'spec',
    'note': '128 channels x 64 B/clk; memory-side cache, holds no dirty data',
   },
   'shared_by_all': True,
  },
  'l2': {
   'capacity': {'value': '24 MiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '25.8 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '6 XCD x 16 channels x 128 B/clk x 2100 MHz',
   },
   'partitions': {
    'value': 6,
    'source': ['rocm-archspecs'],
    'status': 'spec',
    'note': '4 MiB private to each XCD',
   },
   'shared_by_all': False,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['rocm-archspecs', 'cdna3-wp'], 'status': 'spec'},
   'max_per_block': {'value': '64 KiB', 'source': ['xla-specs'], 'status': 'config'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {'value': '32 KiB', 'source': ['rocm-archspecs', 'cdna3-wp'], 'status': 'spec'},
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
  'llc': {
   'value': '218 ns',
   'source': ['cc-mi300x-via'],
   'status': 'measured',
   'note': 'second-hand',
  },
 },
 'links': {
  'host': {
   'name': 'on one package',
   'bandwidth_per_direction': {
    'value': '5.3 TB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'CPU and GPU share the memory',
   },
  },
  'scale_up': {
   'name': 'Infinity Fabric (xGMI)',
   'bandwidth_per_direction': {
    'value': '384 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'four sockets, 3 peers x 128',
   },
  },
 },
 'tdp': {
  'value': '550 W',
  'source': ['memory'],
  'status': 'unverified',
  'note': 'up to 760 W; CPU cores included',
 },
 'measured': {
  'llc_bandwidth': {
   'value': '11.9 TB/s',
   'source': ['cc-mi300x-via'],
   'status': 'measured',
   'note': 'measured on MI300X',
  },
 },
 'notes': ['Memory is shared with 24 CPU cores.'],
 'sources': {
  'cc-mi300x-via': "Chips and Cheese, Testing AMD's Giant MI300X. https://chipsandcheese.com/p/testing-amds-giant-mi300x",
  'cdna3-wp': 'AMD CDNA 3 white paper. https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi300': 'ROCm MI300 microarchitecture: FLOPS/clock/CU and peaks. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi300.md',
  'sth-mi300': 'ServeTheHome: MI300X Infinity Cache 17 TB/s peak. https://servethehome.com/amd-instinct-mi300x-gpu-and-mi300a-apus-launched-for-ai-era/3',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
