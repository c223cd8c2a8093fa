"""Compiled from hardware_specs/rtx4090.yaml by `python -m perfmodel.compiled`."""

HASH = "28bd33e8097f631c"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx4090',
 'name': 'NVIDIA GeForce RTX 4090 24GB',
 'aliases': ['nvidia-rtx-4090', 'rtx-4090', '4090', 'nvidia-geforce-rtx-4090'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ada AD102',
 'launch_year': {'value': 2022, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.9',
 'compute': {
  'units': {'value': 128, 'source': ['nv-ada-wp-via'], 'status': 'via'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '2235 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '2520 MHz', 'source': ['nv-ada-wp-via'], 'status': 'via'},
   'reached': {
    'value': '2700 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'matrix': {
   'tf32': {
    'value': '82.58 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '165.2 TFLOP/s',
    'source': ['nv-ada-wp-via', 'llm-calc'],
    'status': 'via',
    'note': 'FP32 accumulate HALF rate; 165.2/330.4*; fp32 accumulate; 330.3 TFLOP/s accumulating in fp16',
   },
   'bf16': {'value': '165.2 TFLOP/s', 'source': ['nv-ada-wp-via'], 'status': 'via'},
   'fp8': {
    'value': '330.3 TFLOP/s',
    'source': ['nv-ada-wp-via'],
    'status': 'via',
    'note': 'corrected in whitepaper v2.02 from 660.6; fp32 accumulate; 660.6 TFLOP/s accumulating in fp16',
   },
   'int8': {'value': '660.6 TOP/s', 'source': ['nv-ada-wp-via'], 'status': 'via'},
   'int4': {
    'value': '1321 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
  },
  'vector': {
   'fp64': {'value': '1.29 TFLOP/s', 'source': ['techpowerup'], 'status': 'secondary'},
   'fp32': {'value': '82.6 TFLOP/s', 'source': ['nv-ada-wp-via'], 'status': 'via'},
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
   'capacity': {'value': '24 GB', 'source': ['nv-ada-wp-via'], 'status': 'via'},
   'bandwidth': {'value': '1.008 TB/s', 'source': ['nv-ada-wp-via'], 'status': 'via'},
  },
  'l2': {
   'capacity': {'value': '72 MiB', 'source': ['nv-ada-wp-via'], 'status': 'via'},
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
 'tdp': {'value': '450 W', 'source': ['llm-calc'], 'status': 'via'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ada-wp-via': 'Ada whitepaper v2.1 Appendix A Table 2 (RTX 4090). https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
  'memory': 'unverified: from memory',
 },
}
