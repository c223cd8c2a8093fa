"""Compiled from hardware_specs/a30.yaml by `python -m perfmodel.compiled`."""

HASH = "443736a38995596c"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'a30',
 'name': 'NVIDIA A30 24GB',
 'aliases': ['nvidia-a30'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA100',
 'launch_year': {'value': 2021, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.0',
 'compute': {
  'units': {'value': 56, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '930 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1440 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'fp64': {
    'value': '10.32 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'tf32': {
    'value': '82.58 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '165.2 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA x 2 x boost; datasheet prints 165 (unverified)',
   },
   'bf16': {
    'value': '165.2 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'int8': {
    'value': '330.3 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'int4': {
    'value': '660.6 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
  },
  'vector': {
   'fp64': {'value': '5.16 TFLOP/s', 'source': ['techpowerup'], 'status': 'secondary'},
   'fp32': {'value': '10.32 TFLOP/s', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'tf32': 1024, 'fp16': 2048, 'bf16': 2048, 'int8': 4096, 'int4': 8192},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 64, 'fp32': 128},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['tilesight', 'sfu-notes'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2',
   'capacity': {'value': '24 GB', 'source': ['techpowerup'], 'status': 'secondary'},
   'bandwidth': {'value': '933.1 GB/s', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '24 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
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
    'source': ['gpubenches'],
    'status': 'measured',
    'note': 'unified L1 measured at 98% of 128 B/clk/SM; shared memory uses the same data path',
   },
   'l1_capacity_per_unit': {
    'value': '192 KiB',
    'source': ['nv-a100-blog', 'gpubenches'],
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
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'NVLink 3',
   'bandwidth_per_direction': {
    'value': '100 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'bridge, 200 GB/s bidirectional',
   },
  },
 },
 'tdp': {'value': '165 W', 'source': ['techpowerup'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-a100-blog': 'NVIDIA Ampere Architecture In-Depth, Tables 3 and 4 (P100, V100, A100). https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
