"""Compiled from hardware_specs/rtx5070ti.yaml by `python -m perfmodel.compiled`."""

HASH = "f06372e4a569fcb9"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx5070ti',
 'name': 'NVIDIA GeForce RTX 5070 Ti 16GB',
 'aliases': ['nvidia-rtx-5070-ti', 'rtx-5070-ti', '5070ti', 'geforce-rtx-5070-ti'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB203',
 'launch_year': {'value': 2025, 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
 'compute_capability': '12.0',
 'compute': {
  'units': {'value': 70, 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '2295 MHz', 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
   'boost': {'value': '2452 MHz', 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
  },
  'matrix': {
   'tf32': {
    'value': '43.94 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '87.88 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '87.88 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '175.8 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp4': {
    'value': '703 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '351.5 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.6866 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '43.94 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 256, 'fp16': 512, 'bf16': 512, 'fp8': 1024, 'fp4': 4096, 'int8': 2048},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 4, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['tilesight'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR7',
   'capacity': {'value': '16 GB', 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
   'bandwidth': {
    'value': '896 GB/s',
    'source': ['nv-rtx50-wp'],
    'status': 'unverified',
    'note': '256 bit x 28 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '48 MiB', 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '100 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '99 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'reserved_per_block': {'value': '1 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['nv-rtxbw-wp-via'],
    'status': 'secondary',
    'note': 'L1 and shared memory together; no TMEM, no tcgen05',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 1536,
  'max_warps_per_unit': 48,
  'max_blocks_per_unit': 24,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'tdp': {'value': '300 W', 'source': ['nv-rtx50-wp'], 'status': 'unverified'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-rtx50-wp': 'RTX Blackwell white paper, appendix, RTX 5070 Ti, recalled from memory; check before use',
  'nv-rtxbw-wp-via': 'RTX Blackwell whitepaper V1.1 Appendix A Table 3 (RTX 5090); also cited by pytorch/ao. https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
