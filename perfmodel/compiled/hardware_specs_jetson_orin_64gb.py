"""Compiled from hardware_specs/jetson-orin-64gb.yaml by `python -m perfmodel.compiled`."""

HASH = "580efcd60c99e01f"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'jetson-orin-64gb',
 'name': 'NVIDIA Jetson AGX Orin 64GB',
 'aliases': ['nvidia-jetson-agx-orin-64gb', 'orin', 'jetson-agx-orin'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA10B',
 'launch_year': {'value': 2022, 'source': ['fixstars-orin'], 'status': 'secondary'},
 'compute_capability': '8.7',
 'compute': {
  'units': {'value': 16, 'source': ['orin-brief-copy', 'jetson'], 'status': 'via'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1300 MHz', 'source': ['jetson'], 'status': 'secondary'}},
  'matrix': {
   'fp16': {
    'value': '42.6 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'needs the GA100-class tensor rate; 64 tensor cores / 16 SMs',
   },
   'bf16': {
    'value': '42.6 TFLOP/s',
    'source': ['formula', 'cuda-guide'],
    'status': 'derived',
    'note': 'as fp16: capability 8.7 has bf16 matrix instructions of the same shapes',
   },
   'int8': {
    'value': '85 TOP/s',
    'source': ['orin-brief-copy'],
    'status': 'via',
    'note': 'tech brief prints 170 sparse; the 275 TOPS headline = 170 sparse GPU + 105 sparse DLA',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.0832 TFLOP/s',
    'source': ['accelsim-fma'],
    'status': 'derived',
    'note': '2 FMA/clk/SM measured',
   },
   'fp32': {'value': '5.3 TFLOP/s', 'source': ['orin-brief-copy'], 'status': 'via'},
   'fp16': {
    'value': '10.65 TFLOP/s',
    'source': ['accelsim-fma'],
    'status': 'derived',
    'note': '256 FMA/clk/SM vector FP16 like GA100 (200 measured), unlike GA102',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 2048, 'bf16': 2048, 'int8': 4096},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 4, 'fp32': 256, 'fp16': 512},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'LPDDR5',
   'capacity': {'value': '64 GB', 'source': ['jetson'], 'status': 'secondary'},
   'bandwidth': {'value': '204.8 GB/s', 'source': ['jetson'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '4 MiB', 'source': ['orin-brief-copy'], 'status': 'via'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '164 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '163 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'reserved_per_block': {'value': '1 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['ga102-wp-smem'],
    'status': 'derived',
    'note': 'GA102 whitepaper 128; gpu-benches measured only 64 B/clk/SM for 32-bit global loads from L1 on A40/L40; assumed equal',
   },
   'l1_capacity_per_unit': {
    'value': '192 KiB',
    'source': ['orin-brief-copy'],
    'status': 'secondary',
    'note': 'L1 and shared memory together',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 1536,
  'max_warps_per_unit': 48,
  'max_blocks_per_unit': 16,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'tdp': {
  'value': '60 W',
  'source': ['fixstars-orin'],
  'status': 'secondary',
  'note': '15-60 W configurable',
 },
 'notes': ['Memory is shared with the CPU. 275 TOPS is sparse INT8 and includes the DLAs.'],
 'sources': {
  'accelsim-fma': 'Measured FMA/clk/SM: A100, Orin (sm_87), RTX 3090 (INT32, FP16, FP32, FP64)',
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide': 'CUDA C++ Programming Guide, compute capabilities: data types of tensor cores (8.x: fp16, bf16, tf32, int8, int4)',
  'fixstars-orin': 'Jetson AGX Orin: 2022, 15-60 W, 275 sparse INT8 TOPS. https://blog.us.fixstars.com/?p=1855&preview=true',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'jetson': 'Jetson comparison table (Ultralytics, Seeed): 2048 cores, 64 tensor cores, 1.3 GHz, 204.8 GB/s',
  'memory': 'unverified: from memory',
  'orin-brief-copy': 'Summary of the NVIDIA Jetson AGX Orin technical brief: 16 SMs, 192 KB L1, 4 MB L2, 5.3 FP32 TFLOPS, 64 tensor cores 170 sparse INT8 TOPS, DLA 105 sparse TOPS. http://mzph.cn/web/30785.shtml',
 },
}
