"""Compiled from hardware_specs/jetson-thor.yaml by `python -m perfmodel.compiled`."""

HASH = "84c525631cc777ed"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'jetson-thor',
 'name': 'NVIDIA Jetson AGX Thor (T5000) 128GB',
 'aliases': ['jetson-agx-thor', 'nvidia-jetson-thor', 'jetson-t5000', 'nvidia-thor'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell Thor',
 'launch_year': {'value': 2025, 'source': ['nv-thor-ds'], 'status': 'unverified'},
 'compute_capability': '11.0',
 'compute': {
  'units': {'value': 20, 'source': ['thor-forum', 'ridgerun-thor'], 'status': 'config'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1575 MHz', 'source': ['nv-thor-ds'], 'status': 'unverified'}},
  'matrix': {
   'tf32': {
    'value': '129 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '258 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '258 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '517.5 TFLOP/s',
    'source': ['nv-thor-ds'],
    'status': 'unverified',
    'note': 'half of the figure printed for structured zeros',
   },
   'fp4': {
    'value': '1035 TFLOP/s',
    'source': ['nv-thor-ds'],
    'status': 'unverified',
    'note': 'half of the figure printed for structured zeros',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.126 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '8.064 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 4096, 'fp16': 8192, 'bf16': 8192, 'fp8': 16384, 'fp4': 32768},
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
   'per_clock_per_unit': {
    'value': '16 /clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'as compute capability 10.0',
   },
  },
 },
 'memory': {
  'hbm': {
   'technology': 'LPDDR5X',
   'capacity': {'value': '128 GB', 'source': ['nv-thor-ds'], 'status': 'unverified'},
   'bandwidth': {'value': '273 GB/s', 'source': ['nv-thor-ds'], 'status': 'unverified'},
  },
  'l2': {
   'capacity': {'value': '32 MiB', 'source': ['thor-forum'], 'status': 'config'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '228 KiB', 'source': ['thor-forum'], 'status': 'config'},
   'max_per_block': {
    'value': '227 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'reserved_per_block': {'value': '1 KiB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'as compute capability 10.0',
   },
   'l1_capacity_per_unit': {
    'value': '256 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L1 and shared memory together',
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
  'source': ['cuda-guide-cc'],
  'status': 'via',
 },
 'links': {
  'host': {
   'name': 'on one chip',
   'bandwidth_per_direction': {
    'value': '273 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'CPU and GPU share the memory',
   },
  },
 },
 'tdp': {
  'value': '130 W',
  'source': ['nv-thor-ds'],
  'status': 'unverified',
  'note': '40 to 130 W configurable',
 },
 'notes': [
  'Memory is shared with the CPU. The matrix unit is that of B200: tcgen05 at the same rate a clock.',
 ],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-cc': 'CUDA C++ Programming Guide, tables of technical specifications and of arithmetic throughput by compute capability, recalled from memory',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'nv-thor-ds': 'NVIDIA Jetson T5000 data sheet: 2,070 TFLOP/s of fp4 and 1,035 of fp8 with structured zeros, 1,575 MHz, 40 to 130 W, recalled from memory; check before use',
  'ridgerun-thor': 'RidgeRun, NVIDIA Jetson AGX Thor, Blackwell GPU: 2560 lanes, 10 TPCs. https://developer.ridgerun.com/wiki/index.php/NVIDIA_Jetson_AGX_Thor/Blackwell_GPU',
  'thor-forum': 'NVIDIA developer forum: properties that the driver reports for NVIDIA Thor, 20 SMs, 32 MiB L2, 228 KiB shared memory an SM. https://forums.developer.nvidia.com/t/clarification-on-cuda-core-and-tensor-core-counts-for-jetson-agx-thor/356355',
 },
}
