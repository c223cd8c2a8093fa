"""Compiled from hardware_specs/rtx2080ti.yaml by `python -m perfmodel.compiled`."""

HASH = "e6fceceae6c08ef3"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx2080ti',
 'name': 'NVIDIA GeForce RTX 2080 Ti 11GB',
 'aliases': ['nvidia-rtx-2080-ti', 'rtx-2080-ti', '2080ti', 'nvidia-geforce-rtx-2080-ti'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Turing TU102',
 'launch_year': {'value': 2018, 'source': ['nv-turing-blog'], 'status': 'spec'},
 'compute_capability': '7.5',
 'compute': {
  'units': {'value': 68, 'source': ['nv-turing-blog'], 'status': 'spec'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1350 MHz', 'source': ['nv-turing-blog'], 'status': 'spec'},
   'boost': {
    'value': '1545 MHz',
    'source': ['nv-turing-blog'],
    'status': 'spec',
    'note': 'reference; Founders Edition 1635',
   },
   'reached': {
    'value': '1800 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'fp16': {
    'value': '53.8 TFLOP/s',
    'source': ['nv-turing-blog'],
    'status': 'spec',
    'note': 'FP32 accumulate is HALF rate; FE 56.9; fp32 accumulate; 107.6 TFLOP/s accumulating in fp16',
   },
   'int8': {'value': '215.2 TOP/s', 'source': ['nv-turing-blog'], 'status': 'spec'},
   'int4': {'value': '430.3 TOP/s', 'source': ['nv-turing-blog'], 'status': 'spec'},
  },
  'vector': {
   'fp64': {
    'value': '0.4202 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp32': {
    'value': '13.4 TFLOP/s',
    'source': ['nv-turing-blog'],
    'status': 'spec',
    'note': 'Founders Edition at 1635 MHz: 14.2',
   },
   'fp16': {'value': '26.9 TFLOP/s', 'source': ['nv-turing-blog'], 'status': 'spec'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 512, 'int8': 2048, 'int4': 4096},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 4, 'fp32': 128, 'fp16': 256},
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
   'technology': 'GDDR6',
   'capacity': {'value': '11 GB', 'source': ['nv-turing-blog'], 'status': 'spec'},
   'bandwidth': {'value': '616 GB/s', 'source': ['nv-turing-blog'], 'status': 'spec'},
  },
  'l2': {
   'capacity': {'value': '5.5 MiB', 'source': ['nv-turing-blog'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '64 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'bandwidth_per_unit': {
    'value': '64 B/clk',
    'source': ['ga102-wp-smem'],
    'status': 'via',
    'note': 'Turing: 64 B/clk/SM, half of Volta/Ampere',
   },
   'l1_capacity_per_unit': {
    'value': '96 KiB',
    'source': ['nv-turing-blog'],
    'status': 'secondary',
    'note': 'L1 and shared memory together',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 1024,
  'max_warps_per_unit': 32,
  'max_blocks_per_unit': 16,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'latency': {
  'shared': {
   'value': '23 cycles',
   'at_clock': '1620 MHz',
   'source': ['sjfeng'],
   'status': 'measured',
   'note': 'RTX 2070, the same SM, at its 1620 MHz boost',
  },
  'l1': {
   'value': '32 cycles',
   'at_clock': '1620 MHz',
   'source': ['sjfeng'],
   'status': 'measured',
   'note': 'RTX 2070, the same SM, at its 1620 MHz boost',
  },
  'l2': {
   'value': '236 cycles',
   'at_clock': '1620 MHz',
   'source': ['sjfeng'],
   'status': 'measured',
   'note': 'RTX 2070, the same SM, at its 1620 MHz boost',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
  'scale_up': {
   'name': 'NVLink 2',
   'bandwidth_per_direction': {
    'value': '50 GB/s',
    'source': ['nv-turing-blog'],
    'status': 'spec',
    'note': 'two x8 links, 100 GB/s bidirectional in total',
   },
  },
 },
 'tdp': {'value': '250 W', 'source': ['nv-turing-blog'], 'status': 'spec', 'note': 'FE 260 W'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'memory': 'unverified: from memory',
  'nv-turing-blog': 'NVIDIA Turing Architecture In-Depth, Table 1 (RTX 2080 Ti, Quadro RTX 6000). https://developer.nvidia.com/blog/nvidia-turing-architecture-in-depth/',
  'sjfeng': 'Turing RTX 2070 latencies: L1 32, shared 23, L2 236 cycles. https://github.com/sjfeng1999/gpu-arch-microbenchmark',
 },
}
