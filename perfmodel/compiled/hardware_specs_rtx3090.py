"""Compiled from hardware_specs/rtx3090.yaml by `python -m perfmodel.compiled`."""

HASH = "777692c080b1a65e"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx3090',
 'name': 'NVIDIA GeForce RTX 3090 24GB',
 'aliases': ['nvidia-rtx-3090', 'rtx-3090', '3090', 'nvidia-geforce-rtx-3090'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA102',
 'launch_year': {'value': 2020, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.6',
 'compute': {
  'units': {'value': 82, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1395 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1695 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'reached': {
    'value': '1820 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'tf32': {
    'value': '35.58 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '71 TFLOP/s',
    'source': ['nv-ga102-wp-via'],
    'status': 'via',
    'note': 'FP32 accumulate HALF rate; fp32 accumulate; 142.3 TFLOP/s accumulating in fp16',
   },
   'bf16': {
    'value': '71.16 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'int8': {
    'value': '284.7 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'int4': {
    'value': '569.3 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
  },
  'vector': {
   'fp64': {'value': '0.556 TFLOP/s', 'source': ['techpowerup'], 'status': 'secondary'},
   'fp32': {'value': '35.6 TFLOP/s', 'source': ['nv-ga102-wp-via'], 'status': 'via'},
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
   'capacity': {'value': '24 GB', 'source': ['techpowerup'], 'status': 'secondary'},
   'bandwidth': {'value': '936 GB/s', 'source': ['nv-ga102-wp-via', 'techpowerup'], 'status': 'via'},
  },
  'l2': {
   'capacity': {'value': '6 MiB', 'source': ['techpowerup', 'nv-ga102-wp-via'], 'status': 'secondary'},
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
  'scale_up': {
   'name': 'NVLink 3',
   'bandwidth_per_direction': {'value': '56.25 GB/s', 'source': ['memory'], 'status': 'unverified', 'note': 'bridge'},
  },
 },
 'tdp': {'value': '350 W', 'source': ['techpowerup'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ga102-wp-via': 'GA102 whitepaper (RTX 3090, A6000). https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
