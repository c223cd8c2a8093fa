"""Compiled from hardware_specs/v100-sxm2.yaml by `python -m perfmodel.compiled`."""

HASH = "8257c226c2893d08"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'v100-sxm2',
 'name': 'NVIDIA Tesla V100 SXM2 16GB',
 'aliases': ['nvidia-v100-sxm2-16gb', 'v100', 'v100-sxm2-16gb', 'tesla-v100-sxm2-16gb'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Volta GV100',
 'launch_year': {'value': 2017, 'source': ['memory'], 'status': 'unverified'},
 'compute_capability': '7.0',
 'compute': {
  'units': {'value': 80, 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {
    'value': '1312 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'third-party tables disagree (1230, 1245, 1290, 1312)',
   },
   'boost': {'value': '1530 MHz', 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
  },
  'matrix': {'fp16': {'value': '125 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'}},
  'vector': {
   'fp64': {'value': '7.8 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'fp32': {'value': '15.7 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'fp16': {'value': '31.4 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'spec'},
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
   'capacity': {'value': '16 GB', 'source': ['nv-a100-blog'], 'status': 'spec'},
   'bandwidth': {
    'value': '898 GB/s',
    'source': ['xla-specs'],
    'status': 'config',
    'note': '4096 bit x 877 MHz x 2; NVIDIA prints 900',
   },
  },
  'l2': {
   'capacity': {'value': '6 MiB', 'source': ['nv-a100-blog', 'xla-specs'], 'status': 'spec'},
   'bandwidth': {
    'value': '3.133 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '2048 x 1530 MHz',
   },
   'bytes_per_clock': {
    'value': '2048 B/clk',
    'source': ['nv-a100-wp-via', 'nv-a100-blog'],
    'status': 'derived',
    'note': 'A100 5120 B/clk is "2.3x V100" in bandwidth at 1410/1530 MHz -> about 2048',
   },
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
  'scale_up': {
   'name': 'NVLink 2',
   'bandwidth_per_direction': {
    'value': '150 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '6 links; 300 GB/s bidirectional',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['nv-a100-blog'], 'status': 'spec'},
 'measured': {
  'hbm_bandwidth': {
   'read': {
    'value': '866 GB/s',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': 'V100 PCIe 16GB',
   },
   'write': {'value': '895 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'scale': {'value': '804 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'triad': {'value': '814 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
  },
  'l2_bandwidth': {
   'value': '2.43 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'V100 PCIe at 1380 MHz, gpu-cache, 0.3-6 MB',
  },
  'l1_bandwidth': {
   'value': '13.89 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '98% of 128 B/clk/SM at 1380 MHz',
  },
 },
 'notes': ['No TF32, BF16 or INT8 tensor cores. gpu-benches rows are the PCIe card (1380 MHz).'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-a100-blog': 'NVIDIA Ampere Architecture In-Depth, Tables 3 and 4 (P100, V100, A100). https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/',
  'nv-a100-wp-via': 'A100 whitepaper, as quoted with page numbers by a third-party preset file. https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
