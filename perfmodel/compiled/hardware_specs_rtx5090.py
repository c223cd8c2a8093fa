"""Compiled from hardware_specs/rtx5090.yaml by `python -m perfmodel.compiled`."""

HASH = "06c9a14d2d950eac"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx5090',
 'name': 'NVIDIA GeForce RTX 5090 32GB',
 'aliases': ['nvidia-rtx-5090', 'rtx-5090', '5090', 'nvidia-geforce-rtx-5090'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB202',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute_capability': '12.0',
 'compute': {
  'units': {'value': 170, 'source': ['spheron-5090', 'pocketmags-5090'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '2017 MHz', 'source': ['memory'], 'status': 'unverified'},
   'boost': {
    'value': '2407 MHz',
    'source': ['pocketmags-5090', 'nv-rtxbw-wp-via'],
    'status': 'via',
   },
   'reached': {
    'value': '2650 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'tf32': {
    'value': '104.8 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '209.5 TFLOP/s',
    'source': ['nv-rtxbw-wp-via', 'torchao-roofline'],
    'status': 'via',
    'note': 'FP32 accumulate HALF rate; 209.5/419*; fp32 accumulate; 419 TFLOP/s accumulating in fp16',
   },
   'bf16': {
    'value': '209.5 TFLOP/s',
    'source': ['nv-rtxbw-wp-via', 'torchao-roofline'],
    'status': 'via',
   },
   'fp8': {
    'value': '419 TFLOP/s',
    'source': ['nv-rtxbw-wp-via', 'torchao-roofline'],
    'status': 'via',
    'note': 'fp32 accumulate; 838 TFLOP/s accumulating in fp16',
   },
   'fp4': {
    'value': '1676 TFLOP/s',
    'source': ['nv-rtxbw-wp-via', 'torchao-roofline'],
    'status': 'via',
    'note': 'headline 3352 AI TOPS is sparse; FP4 with FP32 accumulate is NOT halved',
   },
   'int8': {'value': '838 TOP/s', 'source': ['memory'], 'status': 'unverified'},
  },
  'vector': {
   'fp64': {
    'value': '1.637 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp32': {
    'value': '104.8 TFLOP/s',
    'source': ['pocketmags-5090'],
    'status': 'secondary',
    'note': '104-105',
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
   'capacity': {'value': '32 GB', 'source': ['spheron-5090'], 'status': 'secondary'},
   'bandwidth': {
    'value': '1.792 TB/s',
    'source': ['spheron-5090', 'torchao-roofline'],
    'status': 'secondary',
    'note': 'torchao code has a unit slip: 1.792e15',
   },
  },
  'l2': {
   'capacity': {'value': '96 MiB', 'source': ['pocketmags-5090'], 'status': 'secondary'},
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
 'tdp': {'value': '575 W', 'source': ['spheron-5090', 'llm-calc'], 'status': 'secondary'},
 'notes': ['No NVLink. sm_120 lacks tcgen05/TMEM and wgmma.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-rtxbw-wp-via': 'RTX Blackwell whitepaper V1.1 Appendix A Table 3 (RTX 5090); also cited by pytorch/ao. https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf',
  'pocketmags-5090': 'RTX 5090: 2407 MHz, 96 MB L2, 104 TFLOPS FP32. https://pocketmags.com/linux-format-magazine/may-2025/articles/nvidia-geforce-rtx-5090',
  'spheron-5090': 'RTX 5090: 170 SMs, 1792 GB/s, 575 W, sparse headline numbers. https://www.spheron.network/blog/nvidia-rtx-5090-specs/',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
  'torchao-roofline': 'torchao roofline_utils: peaks, 0.78 achievable GEMM, 0.92 achievable memory bandwidth, 2 us kernel overhead. https://github.com/pytorch/ao/blob/0598012907d6f6e88734088a65f788c38d294a65/torchao/testing/training/roofline_utils.py',
 },
}
