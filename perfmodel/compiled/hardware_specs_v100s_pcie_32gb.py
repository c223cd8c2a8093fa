"""Compiled from hardware_specs/v100s-pcie-32gb.yaml by `python -m perfmodel.compiled`."""

HASH = "f8a9b573eca2d8c2"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'v100s-pcie-32gb',
 'name': 'NVIDIA Tesla V100S PCIe 32GB',
 'aliases': ['v100s', 'nvidia-v100s', 'tesla-v100s'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Volta GV100',
 'launch_year': {'value': 2019, 'source': ['nv-v100s-ds'], 'status': 'unverified'},
 'compute_capability': '7.0',
 'compute': {
  'units': {'value': 80, 'source': ['nv-v100s-ds'], 'status': 'unverified'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1245 MHz', 'source': ['nv-v100s-ds'], 'status': 'unverified'},
   'boost': {'value': '1597 MHz', 'source': ['nv-v100s-ds'], 'status': 'unverified'},
  },
  'matrix': {'fp16': {'value': '130 TFLOP/s', 'source': ['nv-v100s-ds'], 'status': 'unverified'}},
  'vector': {
   'fp64': {
    'value': '8.177 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '16.35 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '32.71 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 1024},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
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
   'capacity': {'value': '32 GB', 'source': ['nv-v100s-ds'], 'status': 'unverified'},
   'bandwidth': {
    'value': '1134 GB/s',
    'source': ['nv-v100s-ds'],
    'status': 'unverified',
    'note': '4096 bit x 2.2 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '6 MiB', 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '96 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '96 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': 'unified L1 measured at 98% of 128 B/clk/SM; shared memory uses the same data path',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['gpubenches', 'xla-specs'],
    'status': 'secondary',
    'note': 'L1 and shared memory together',
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
  'l1': {
   'value': '29.9 cycles',
   'at_clock': '1380 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on V100 PCIe',
  },
  'l2': {
   'value': '215 cycles',
   'at_clock': '1380 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on V100 PCIe',
  },
  'hbm': {
   'value': '437 cycles',
   'at_clock': '1380 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on V100 PCIe',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'tdp': {'value': '250 W', 'source': ['nv-v100s-ds'], 'status': 'unverified'},
 'measured': {
  'l2_bandwidth': {
   'value': '2.43 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'V100 PCIe at 1380 MHz, gpu-cache, 0.3-6 MB',
  },
 },
 'notes': [
  'No TF32, BF16 or INT8 tensor cores.',
  'Structure of the SM and of the caches is that of V100, the same die.',
 ],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'memory': 'unverified: from memory',
  'nv-a100-blog': 'NVIDIA Ampere Architecture In-Depth, Tables 3 and 4 (P100, V100, A100). https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/',
  'nv-v100s-ds': 'NVIDIA V100S data sheet, recalled from memory; check before use',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
