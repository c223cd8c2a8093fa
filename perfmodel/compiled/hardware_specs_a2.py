"""Compiled from hardware_specs/a2.yaml by `python -m perfmodel.compiled`."""

HASH = "29f6751cff7d2ec1"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'a2',
 'name': 'NVIDIA A2 16GB',
 'aliases': ['nvidia-a2'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA107',
 'launch_year': {'value': 2021, 'source': ['technical-city'], 'status': 'secondary'},
 'compute_capability': '8.6',
 'compute': {
  'units': {
   'value': 10,
   'source': ['technical-city'],
   'status': 'secondary',
   'note': '1280 cores / 128',
  },
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1440 MHz', 'source': ['technical-city'], 'status': 'secondary'},
   'boost': {'value': '1770 MHz', 'source': ['technical-city'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '9.062 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '18.12 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '18.12 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '36.25 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int4': {
    'value': '72.5 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.0708 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '4.531 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 512, 'fp16': 1024, 'bf16': 1024, 'int8': 2048, 'int4': 4096},
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
   'technology': 'GDDR6',
   'capacity': {
    'value': '16 GB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'error correction is on as shipped: the driver reports 15,356 MiB (recalled)',
   },
   'bandwidth': {
    'value': '200 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '128 bit x 12.5 Gb/s',
   },
   'ecc': 'inline',
  },
  'l2': {
   'capacity': {'value': '2 MiB', 'source': ['technical-city'], 'status': 'secondary'},
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
    'status': 'via',
    'note': 'GA102 whitepaper 128; gpu-benches measured only 64 B/clk/SM for 32-bit global loads from L1 on A40/L40',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['nv-ga102-wp-via'],
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
 'links': {
  'host': {
   'name': 'PCIe 4 x8',
   'bandwidth_per_direction': {
    'value': '15.5 GB/s',
    'source': ['technical-city'],
    'status': 'derived',
    'note': 'half of 16 lanes',
   },
  },
 },
 'tdp': {'value': '60 W', 'source': ['technical-city'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'memory': 'unverified: from memory',
  'nv-ga102-wp-via': 'GA102 whitepaper (RTX 3090, A6000). https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'technical-city': 'technical.city card pages, derived from TechPowerUp. https://technical.city/en/video',
 },
}
