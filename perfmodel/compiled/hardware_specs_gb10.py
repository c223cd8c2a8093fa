"""Compiled from hardware_specs/gb10.yaml by `python -m perfmodel.compiled`."""

HASH = "b5b2951ddf54d94e"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gb10',
 'name': 'NVIDIA GB10 (DGX Spark) 128GB',
 'aliases': ['dgx-spark', 'nvidia-gb10', 'nvidia-dgx-spark'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB10',
 'launch_year': {'value': 2025, 'source': ['hmc'], 'status': 'secondary'},
 'compute_capability': '12.1',
 'compute': {
  'units': {'value': 48, 'source': ['hmc'], 'status': 'secondary', 'note': '6144 cores / 128'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {'boost': {'value': '2525 MHz', 'source': ['hmc'], 'status': 'secondary'}},
  'matrix': {
   'tf32': {
    'value': '31.03 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '62.05 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '62.05 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '124.1 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp4': {
    'value': '496.4 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '248.2 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.4848 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '31.03 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
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
   'technology': 'LPDDR5X',
   'capacity': {'value': '128 GB', 'source': ['spark-kubesimplify'], 'status': 'secondary'},
   'bandwidth': {'value': '273 GB/s', 'source': ['spark-kubesimplify'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '24 MiB', 'source': ['memory'], 'status': 'unverified'},
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
   'name': 'NVLink-C2C',
   'bandwidth_per_direction': {
    'value': '300 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '600 GB/s bidirectional, to the CPU die that holds the memory',
   },
  },
  'scale_out': {
   'name': '200 Gb/s NIC',
   'bandwidth_per_direction': {
    'value': '25 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'ConnectX-7',
   },
  },
 },
 'tdp': {
  'value': '140 W',
  'source': ['ferra-gb10'],
  'status': 'secondary',
  'note': 'the whole chip, CPU cores included',
 },
 'notes': ['Memory is shared with the CPU. fp4 reaches 1 PFLOP/s only with structured zeros.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'ferra-gb10': 'Report of Hot Chips 2025: GB10, 31 TFLOP/s fp32, 1000 TOPS fp4, 140 W. https://www.ferra.ru/news/techlife/nvidia-predstavila-superchip-gb10-grace-blackwell-20-arm-yadrami-i-gpu-blackwell-27-08-2025.htm',
  'formula': 'Computed from other facts of the same file; the note says how',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'memory': 'unverified: from memory',
  'nv-rtxbw-wp-via': 'RTX Blackwell whitepaper V1.1 Appendix A Table 3 (RTX 5090); also cited by pytorch/ao. https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf',
  'spark-kubesimplify': 'The DGX Spark unpacked: compute capability 12.1, 273 GB/s, 128 GB unified memory. https://blog.kubesimplify.com/blog/day-3-the-dgx-spark-unpacked-gb10-unified-memory-sm-121-and-the-one-reason-this-hardware-exists',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
