"""Compiled from hardware_specs/p100-sxm2.yaml by `python -m perfmodel.compiled`."""

HASH = "0c03b971e1088552"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'p100-sxm2',
 'name': 'NVIDIA Tesla P100 SXM2 16GB',
 'aliases': ['nvidia-p100-sxm2', 'p100', 'p100-sxm2-16gb', 'tesla-p100-sxm2-16gb'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Pascal GP100',
 'launch_year': {'value': 2016, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '6.0',
 'compute': {
  'units': {'value': 56, 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1328 MHz', 'source': ['memory'], 'status': 'unverified'},
   'boost': {'value': '1480 MHz', 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
  },
  'vector': {
   'fp64': {'value': '5.3 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'fp32': {'value': '10.6 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'fp16': {'value': '21.2 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 64, 'fp32': 128, 'fp16': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['cuda-guide-via'], 'status': 'via'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2',
   'capacity': {'value': '16 GB', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'bandwidth': {
    'value': '732.2 GB/s',
    'source': ['xla-specs'],
    'status': 'config',
    'note': '4096 bit x 715 MHz x 2; the NVIDIA table prints 720',
   },
  },
  'l2': {
   'capacity': {'value': '4 MiB', 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {'value': '48 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '24 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L1/tex 24 KB separate from 64 KB shared (unverified)',
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
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'latency': {
  'shared': {
   'value': '24 cycles',
   'at_clock': '1328 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'P100 at its 1328 MHz',
  },
  'l1': {
   'value': '82 cycles',
   'at_clock': '1328 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'P100 at its 1328 MHz',
  },
  'l2': {
   'value': '234 cycles',
   'at_clock': '1328 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'P100 at its 1328 MHz',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
  'scale_up': {
   'name': 'NVLink 1',
   'bandwidth_per_direction': {
    'value': '80 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '4 links; 160 GB/s bidirectional',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['nv-a100-blog'], 'status': 'spec'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-a100-blog': 'NVIDIA Ampere Architecture In-Depth, Tables 3 and 4 (P100, V100, A100). https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
