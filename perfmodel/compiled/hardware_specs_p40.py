"""Compiled from hardware_specs/p40.yaml by `python -m perfmodel.compiled`."""

HASH = "ea3ac8a112b3edd8"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'p40',
 'name': 'NVIDIA Tesla P40 24GB',
 'aliases': ['nvidia-p40', 'tesla-p40', 'nvidia-tesla-p40'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Pascal GP102',
 'launch_year': {'value': 2016, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '6.1',
 'compute': {
  'units': {'value': 30, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1303 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1531 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '0.3674 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '11.76 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '0.1837 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '1/64 rate: unusable',
   },
   'int8': {
    'value': '47.03 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'DP4A on the vector unit, no matrix unit',
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
   'capacity': {
    'value': '24 GB',
    'source': ['alldbin'],
    'status': 'secondary',
    'note': 'error correction is on as shipped: the driver reports 22,919 MiB (recalled)',
   },
   'bandwidth': {
    'value': '347.1 GB/s',
    'source': ['alldbin'],
    'status': 'secondary',
    'note': '384 bit x 7.2 Gb/s',
   },
   'ecc': 'inline',
  },
  'l2': {
   'capacity': {'value': '3 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
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
   'note': 'measured on P4, the same SM',
  },
  'l1': {
   'value': '82 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on P4, the same SM',
  },
  'l2': {
   'value': '216 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on P4, the same SM',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'tdp': {'value': '250 W', 'source': ['techpowerup'], 'status': 'secondary'},
 'sources': {
  'alldbin': 'Card comparison pages. https://cpu-gpu.alldbin.com/graphics-card-comparison/Tesla-P40-and-TITAN-RTX-comparison.html',
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
