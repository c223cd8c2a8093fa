"""Compiled from hardware_specs/l20.yaml by `python -m perfmodel.compiled`."""

HASH = "b191621224efb774"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'l20',
 'name': 'NVIDIA L20 48GB',
 'aliases': ['nvidia-l20'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ada AD102 (export)',
 'launch_year': {'value': 2023, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.9',
 'compute': {
  'units': {'value': 92, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1440 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '2520 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {'value': '59.8 TFLOP/s', 'source': ['nv-l20-ds'], 'status': 'unverified'},
   'fp16': {'value': '119.5 TFLOP/s', 'source': ['nv-l20-ds'], 'status': 'unverified'},
   'bf16': {'value': '119.5 TFLOP/s', 'source': ['nv-l20-ds'], 'status': 'unverified'},
   'fp8': {'value': '239 TFLOP/s', 'source': ['nv-l20-ds'], 'status': 'unverified'},
   'int8': {'value': '239 TOP/s', 'source': ['nv-l20-ds'], 'status': 'unverified'},
  },
  'vector': {
   'fp64': {
    'value': '0.9274 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '59.35 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 256, 'fp16': 512, 'bf16': 512, 'fp8': 1024, 'int8': 1024},
   'source': ['formula'],
   'status': 'derived',
   'note': "FLOP per clock per SM, a multiply-add counts two; matrix rates capped for export to a quarter of the die's",
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 4, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': "FLOP per clock per SM, a multiply-add counts two; matrix rates capped for export to a quarter of the die's",
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['sfu-notes'], 'status': 'secondary'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR6',
   'capacity': {
    'value': '48 GB',
    'source': ['techpowerup'],
    'status': 'secondary',
    'note': 'error correction is on as shipped: the driver reports 46,068 MiB (recalled)',
   },
   'bandwidth': {'value': '864 GB/s', 'source': ['techpowerup'], 'status': 'secondary'},
   'ecc': 'inline',
  },
  'l2': {
   'capacity': {'value': '96 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
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
 'tdp': {'value': '275 W', 'source': ['techpowerup'], 'status': 'secondary'},
 'notes': ['119.5 TFLOP/s is about a third of the 362 of L40S: capped for export.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ada-wp-via': 'Ada whitepaper v2.1 Appendix A Table 2 (RTX 4090). https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf',
  'nv-l20-ds': 'NVIDIA L20 data sheet: 119.5 TFLOP/s of 16 bits, 239 of 8 bits, 59.8 fp32 and tf32, recalled from memory; check before use',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
