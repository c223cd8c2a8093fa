"""Compiled from hardware_specs/rtx3080.yaml by `python -m perfmodel.compiled`."""

HASH = "22980eac54d7284e"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx3080',
 'name': 'NVIDIA GeForce RTX 3080 10GB',
 'aliases': ['nvidia-rtx-3080', 'rtx-3080', '3080', 'geforce-rtx-3080'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA102',
 'launch_year': {'value': 2020, 'source': ['memory'], 'status': 'unverified'},
 'compute_capability': '8.6',
 'compute': {
  'units': {
   'value': 68,
   'source': ['toms-rtx30'],
   'status': 'secondary',
   'note': '8704 cores / 128',
  },
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1440 MHz', 'source': ['toms-rtx30'], 'status': 'secondary'},
   'boost': {'value': '1710 MHz', 'source': ['toms-rtx30'], 'status': 'secondary'},
   'reached': {
    'value': '1880 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'tf32': {
    'value': '29.77 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '59.54 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '59.54 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '238.1 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int4': {
    'value': '476.3 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.4651 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '29.77 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 256, 'fp16': 512, 'bf16': 512, 'int8': 2048, 'int4': 4096},
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
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['sfu-notes'], 'status': 'secondary'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR6X',
   'capacity': {'value': '10 GB', 'source': ['toms-rtx30'], 'status': 'secondary'},
   'bandwidth': {'value': '760 GB/s', 'source': ['toms-rtx30'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '5 MiB', 'source': ['toms-rtx30'], 'status': 'secondary'},
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
    'source': ['ga102-wp-smem'],
    'status': 'via',
    'note': 'GA102 whitepaper 128; gpu-benches measured only 64 B/clk/SM for 32-bit global loads from L1 on A40/L40',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['nv-ga102-wp-via'],
    'status': 'secondary',
    'note': 'L1 and shared memory together',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 1536,
  'max_warps_per_unit': 48,
  'max_blocks_per_unit': 16,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'tdp': {'value': '320 W', 'source': ['toms-rtx30'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ga102-wp-via': 'GA102 whitepaper (RTX 3090, A6000). https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'toms-rtx30': "Tom's Hardware, table of GA102 and GA104 cards. https://www.tomshardware.com/uk/news/nvidia-driver-geforce-rtx-3080-ti-ampere-gpu",
 },
}
