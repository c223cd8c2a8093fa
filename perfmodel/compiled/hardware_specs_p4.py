"""Compiled from hardware_specs/p4.yaml by `python -m perfmodel.compiled`."""

HASH = "2ed85b9bc1473def"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'p4',
 'name': 'NVIDIA Tesla P4 8GB',
 'aliases': ['nvidia-p4', 'tesla-p4'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Pascal GP104',
 'launch_year': {'value': 2016, 'source': ['hmc'], 'status': 'secondary'},
 'compute_capability': '6.1',
 'compute': {
  'units': {'value': 20, 'source': ['hmc'], 'status': 'secondary', 'note': '2560 cores / 128'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '886 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {
    'value': '1063 MHz',
    'source': ['hmc'],
    'status': 'secondary',
    'note': "another table gives 1114 MHz; 1063 reproduces NVIDIA's 5.5 TFLOPS / 22 TOPS",
   },
  },
  'vector': {
   'fp64': {'value': '0.17 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'fp32': {'value': '5.44 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'fp16': {
    'value': '0.09 TFLOP/s',
    'source': ['hmc'],
    'status': 'secondary',
    'note': '1/64 rate: unusable',
   },
   'int8': {
    'value': '21.8 TOP/s',
    'source': ['hmc'],
    'status': 'secondary',
    'note': 'DP4A on CUDA cores, no tensor cores',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 8, 'fp32': 256, 'fp16': 4, 'int8': 1024},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '32 /clk', 'source': ['cuda-guide-via'], 'status': 'via'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR5',
   'ecc': 'inline',
   'capacity': {'value': '8 GB', 'source': ['hmc'], 'status': 'secondary'},
   'bandwidth': {'value': '192.3 GB/s', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '2 MiB', 'source': ['memory'], 'status': 'unverified'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '96 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {'value': '48 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '48 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L1/tex 48 KB separate from 96 KB shared (unverified)',
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
   'value': '23 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': "at the board's highest clock",
  },
  'l1': {
   'value': '82 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': "at the board's highest clock",
  },
  'l2': {
   'value': '216 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': "at the board's highest clock",
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'tdp': {
  'value': '75 W',
  'source': ['hmc', 'techpowerup'],
  'status': 'secondary',
  'note': 'a 50 W variant exists (unverified)',
 },
 'peak_notes': {'vector.fp16': 'FP16 is 1/64 rate; the quoted 0.09 is rounded from 0.085.'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
