"""Compiled from hardware_specs/mi308x.yaml by `python -m perfmodel.compiled`."""

HASH = "ce8396a1835cddb1"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi308x',
 'name': 'AMD Instinct MI308X 192GB',
 'aliases': ['amd-mi308x', 'amd-instinct-mi308x'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA3',
 'launch_year': {'value': 2024, 'source': ['amd-mi308x'], 'status': 'unverified'},
 'target': 'gfx942',
 'compute': {
  'units': {'value': 80, 'source': ['mi308x-agent-table'], 'status': 'secondary'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {
   'boost': {
    'value': '1420 MHz',
    'source': ['amd-mi308x'],
    'status': 'unverified',
    'note': 'reproduces 232 and 465 TFLOP/s',
   },
  },
  'matrix': {
   'fp64': {
    'value': '29.08 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '29.08 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'tf32': {
    'value': '116.3 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {'value': '232 TFLOP/s', 'source': ['mi308x-agent-table'], 'status': 'secondary'},
   'bf16': {'value': '232 TFLOP/s', 'source': ['mi308x-agent-table'], 'status': 'secondary'},
   'fp8': {
    'value': '465 TFLOP/s',
    'source': ['mi308x-agent-table'],
    'status': 'secondary',
    'note': 'FNUZ encodings on gfx942',
   },
   'int8': {'value': '465 TOP/s', 'source': ['mi308x-agent-table'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '14.54 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '29.08 TFLOP/s',
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
   'capacity': {'value': '192 GB', 'source': ['amd-mi308x'], 'status': 'unverified'},
   'bandwidth': {'value': '5.3 TB/s', 'source': ['mi308x-agent-table'], 'status': 'secondary'},
  },
  'llc': {
   'label': 'Infinity Cache',
   'capacity': {'value': '256 MiB', 'source': ['rocm-archspecs', 'ml-engineering'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'l2': {
   'capacity': {'value': '16 MiB', 'source': ['amd-mi308x'], 'status': 'unverified'},
   'bandwidth': {
    'value': '11.6 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '4 XCD x 16 channels x 128 B/clk x 1420 MHz',
   },
   'partitions': {
    'value': 4,
    'source': ['amd-mi308x'],
    'status': 'unverified',
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
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric (xGMI)',
   'bandwidth_per_direction': {
    'value': '448 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '7 links x 64, all-to-all; only 64 to any one peer',
   },
  },
 },
 'tdp': {'value': '650 W', 'source': ['amd-mi308x'], 'status': 'unverified'},
 'notes': ['An MI300X for export, with 80 of 304 compute units.'],
 'sources': {
  'amd-mi308x': 'AMD Instinct MI308X: four accelerator dies of 20 CUs, 1420 MHz, as the driver reports them, recalled from memory; check before use',
  'cc-mi300x-via': "Chips and Cheese, Testing AMD's Giant MI300X. https://chipsandcheese.com/p/testing-amds-giant-mi300x",
  'cdna3-wp': 'AMD CDNA 3 white paper. https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'mi308x-agent-table': 'Table of peaks in a public repository: MI308X 80 CUs, 232 TFLOP/s of 16 bits, 465 of fp8, 5.3 TB/s',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi300': 'ROCm MI300 microarchitecture: FLOPS/clock/CU and peaks. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi300.md',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
