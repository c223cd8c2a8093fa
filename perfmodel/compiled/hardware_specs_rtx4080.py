"""Compiled from hardware_specs/rtx4080.yaml by `python -m perfmodel.compiled`."""

HASH = "203ace818b10e102"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx4080',
 'name': 'NVIDIA GeForce RTX 4080 16GB',
 'aliases': ['nvidia-rtx-4080', 'rtx-4080', '4080', 'geforce-rtx-4080'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ada AD103',
 'launch_year': {'value': 2022, 'source': ['yunze-5080'], 'status': 'secondary'},
 'compute_capability': '8.9',
 'compute': {
  'units': {'value': 76, 'source': ['yunze-5080'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '2205 MHz', 'source': ['yunze-5080'], 'status': 'secondary'},
   'boost': {'value': '2505 MHz', 'source': ['yunze-5080'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '48.74 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '97.47 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '97.47 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '194.9 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '389.9 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int4': {
    'value': '779.8 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.7615 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '48.74 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 256, 'fp16': 512, 'bf16': 512, 'fp8': 1024, 'int8': 2048, 'int4': 4096},
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
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['sfu-notes'], 'status': 'secondary'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR6X',
   'capacity': {'value': '16 GB', 'source': ['yunze-5080'], 'status': 'secondary'},
   'bandwidth': {'value': '716.8 GB/s', 'source': ['yunze-5080'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '64 MiB', 'source': ['yunze-5080'], 'status': 'secondary'},
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
    'source': ['ga102-wp-smem'],
    'status': 'derived',
    'note': 'GA102 whitepaper 128; gpu-benches measured only 64 B/clk/SM for 32-bit global loads from L1 on A40/L40; assumed equal',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['nv-ada-wp-via'],
    'status': 'secondary',
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
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'latency': {
  'l1': {
   'value': '36 cycles',
   'at_clock': '2490 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on L40',
  },
  'l2': {
   'value': '276.5 cycles',
   'at_clock': '2490 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on L40',
  },
  'hbm': {
   'value': '631 cycles',
   'at_clock': '2490 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on L40',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'tdp': {'value': '320 W', 'source': ['yunze-5080'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ada-wp-via': 'Ada whitepaper v2.1 Appendix A Table 2 (RTX 4090). https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'yunze-5080': 'RTX 5080 beside RTX 4080, parameter comparison. https://www.szyunze.com/rtx-5080-vs-rtx-4080-major-performance-differences',
 },
}
