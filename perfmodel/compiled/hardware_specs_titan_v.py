"""Compiled from hardware_specs/titan-v.yaml by `python -m perfmodel.compiled`."""

HASH = "889c7da57ceacc33"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'titan-v',
 'name': 'NVIDIA Titan V 12GB',
 'aliases': ['titanv', 'nvidia-titan-v'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Volta GV100',
 'launch_year': {'value': 2017, 'source': ['memory'], 'status': 'unverified'},
 'compute_capability': '7.0',
 'compute': {
  'units': {
   'value': 80,
   'source': ['hardwareluxx-titan'],
   'status': 'secondary',
   'note': '5120 cores / 64',
  },
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1200 MHz', 'source': ['hardwareluxx-titan'], 'status': 'secondary'},
   'boost': {'value': '1455 MHz', 'source': ['hardwareluxx-titan'], 'status': 'secondary'},
   'reached': {
    'value': '1650 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'fp16': {
    'value': '110 TFLOP/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': "NVIDIA's product page",
   },
  },
  'vector': {
   'fp64': {
    'value': '7.45 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '14.9 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '29.8 TFLOP/s',
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
   'capacity': {'value': '12 GB', 'source': ['hardwareluxx-titan'], 'status': 'secondary'},
   'bandwidth': {
    'value': '652.8 GB/s',
    'source': ['hardwareluxx-titan'],
    'status': 'secondary',
    'note': '3072 bit x 1.7 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '4.5 MiB', 'source': ['memory'], 'status': 'unverified'},
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
 'tdp': {'value': '250 W', 'source': ['hardwareluxx-titan'], 'status': 'secondary'},
 'peak_notes': {'matrix.fp16': 'the product page rates it at about 1340 MHz, below the 1455 MHz boost'},
 'notes': [
  'No TF32, BF16 or INT8 tensor cores.',
  'Structure of the SM is that of V100, the same die with one memory stack less.',
 ],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'hardwareluxx-titan': 'Hardwareluxx: table of Titan V, RTX 2080 Ti and Titan RTX. https://hardwareluxx.de/index.php/news/hardware/grafikkarten/47968-titan-rtx-fuer-2-699-euro-mit-voller-tu102-gpu-und-24-gb-gddr6-vorgestellt.html',
  'memory': 'unverified: from memory',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
