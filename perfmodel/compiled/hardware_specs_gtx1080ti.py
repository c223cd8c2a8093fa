"""Compiled from hardware_specs/gtx1080ti.yaml by `python -m perfmodel.compiled`."""

HASH = "1baa80990e22d181"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gtx1080ti',
 'name': 'NVIDIA GeForce GTX 1080 Ti 11GB',
 'aliases': [
  'nvidia-gtx-1080-ti',
  'gtx-1080-ti',
  '1080ti',
  'geforce-gtx-1080-ti',
  'nvidia-geforce-gtx-1080-ti',
 ],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Pascal GP102',
 'launch_year': {'value': 2017, 'source': ['memory'], 'status': 'unverified'},
 'compute_capability': '6.1',
 'compute': {
  'units': {'value': 28, 'source': ['vortez-1080ti'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1480 MHz', 'source': ['vortez-1080ti'], 'status': 'secondary'},
   'boost': {'value': '1582 MHz', 'source': ['vortez-1080ti'], 'status': 'secondary'},
   'reached': {
    'value': '1777 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.3544 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '11.34 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '0.1772 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '1/64 rate: unusable',
   },
   'int8': {
    'value': '45.36 TOP/s',
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
   'technology': 'GDDR5X',
   'capacity': {'value': '11 GB', 'source': ['vortez-1080ti'], 'status': 'secondary'},
   'bandwidth': {
    'value': '484 GB/s',
    'source': ['vortez-1080ti'],
    'status': 'secondary',
    'note': '352 bit x 11 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '2816 KiB', 'source': ['vortez-1080ti'], 'status': 'secondary'},
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
 'tdp': {'value': '250 W', 'source': ['vortez-1080ti'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'vortez-1080ti': 'Vortez review of the GeForce GTX 1080 Ti, specification table. https://www.vortez.net/articles_pages/nvidia_gtx_1080_ti_review,2.html',
 },
}
