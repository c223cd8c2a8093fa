"""Compiled from hardware_specs/titan-x-maxwell.yaml by `python -m perfmodel.compiled`."""

HASH = "60b4fb8660c299be"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'titan-x-maxwell',
 'name': 'NVIDIA GeForce GTX Titan X 12GB (Maxwell)',
 'aliases': ['gtx-titan-x', 'titanx-maxwell', 'geforce-gtx-titan-x', 'nvidia-titan-x-maxwell'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Maxwell GM200',
 'launch_year': {'value': 2015, 'source': ['hothardware-titanx'], 'status': 'secondary'},
 'compute_capability': '5.2',
 'compute': {
  'units': {'value': 24, 'source': ['hothardware-titanx'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1000 MHz', 'source': ['hothardware-titanx'], 'status': 'secondary'},
   'boost': {'value': '1075 MHz', 'source': ['hothardware-titanx'], 'status': 'secondary'},
   'reached': {
    'value': '1140 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.2064 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '6.605 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 8, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '32 /clk', 'source': ['cuda-guide-cc'], 'status': 'via'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR5',
   'capacity': {'value': '12 GB', 'source': ['hothardware-titanx'], 'status': 'secondary'},
   'bandwidth': {'value': '336.5 GB/s', 'source': ['hothardware-titanx'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '3 MiB', 'source': ['hothardware-titanx'], 'status': 'secondary'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '96 KiB', 'source': ['cuda-guide-cc'], 'status': 'via'},
   'max_per_block': {'value': '48 KiB', 'source': ['cuda-guide-cc'], 'status': 'via'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '48 KiB',
    'source': ['techpowerup'],
    'status': 'secondary',
    'note': 'L1 and texture cache, separate from shared memory',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2048,
  'max_warps_per_unit': 64,
  'max_blocks_per_unit': 32,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cuda-guide-cc'],
  'status': 'via',
 },
 'latency': {
  'shared': {
   'value': '23 cycles',
   'at_clock': '1177 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on M60 (GM204), the same SM',
  },
  'l1': {
   'value': '82 cycles',
   'at_clock': '1177 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on M60 (GM204), the same SM',
  },
  'l2': {
   'value': '207 cycles',
   'at_clock': '1177 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on M60 (GM204), the same SM',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'tdp': {'value': '250 W', 'source': ['hothardware-titanx'], 'status': 'secondary'},
 'notes': ['No fp16 arithmetic and no DP4A: 16-bit values are widened and multiplied as fp32.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-cc': 'CUDA C++ Programming Guide, tables of technical specifications and of arithmetic throughput by compute capability, recalled from memory',
  'formula': 'Computed from other facts of the same file; the note says how',
  'hothardware-titanx': 'HotHardware review of the GeForce GTX Titan X, specification table. https://hothardware.com/reviews/nvidia-geforce-gtx-titan-x-review-efficient-powerful',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
