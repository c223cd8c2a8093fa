"""Compiled from hardware_specs/t4.yaml by `python -m perfmodel.compiled`."""

HASH = "c64aa700a92ae56b"
DOCUMENT = {
 'schema_version': 1,
 'slug': 't4',
 'name': 'NVIDIA T4 16GB',
 'aliases': ['nvidia-t4', 'tesla-t4'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Turing TU104',
 'launch_year': {'value': 2018, 'source': ['hmc'], 'status': 'secondary'},
 'compute_capability': '7.5',
 'compute': {
  'units': {'value': 40, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '585 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1590 MHz', 'source': ['hmc', 'techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'fp16': {'value': '65.1 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'int8': {'value': '130.3 TOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'int4': {'value': '260.5 TOP/s', 'source': ['hmc'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {'value': '0.254 TFLOP/s', 'source': ['techpowerup'], 'status': 'secondary'},
   'fp32': {'value': '8.1 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'fp16': {'value': '16.28 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 1024, 'int8': 2048, 'int4': 4096},
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
   'ecc': 'inline',
   'capacity': {'value': '16 GB', 'source': ['hmc', 'techpowerup'], 'status': 'secondary'},
   'bandwidth': {'value': '320 GB/s', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '4 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
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
 },
 'tdp': {'value': '70 W', 'source': ['hmc', 'techpowerup'], 'status': 'secondary'},
 'notes': [
  '70 W cap: sustained clock is far below 1590 MHz under tensor load; treat the boost peak as unreachable.',
  'Full-rate FP16 tensor with FP32 accumulate (unlike GeForce Turing).',
  'FP64 is 1/32 of FP32 (2 FP64 units per SM give 1/32).',
 ],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'memory': 'unverified: from memory',
  'nv-turing-blog': 'NVIDIA Turing Architecture In-Depth, Table 1 (RTX 2080 Ti, Quadro RTX 6000). https://developer.nvidia.com/blog/nvidia-turing-architecture-in-depth/',
  'sjfeng': 'Turing RTX 2070 latencies: L1 32, shared 23, L2 236 cycles. https://github.com/sjfeng1999/gpu-arch-microbenchmark',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
