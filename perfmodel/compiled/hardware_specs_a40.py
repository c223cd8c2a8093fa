"""Compiled from hardware_specs/a40.yaml by `python -m perfmodel.compiled`."""

HASH = "a97bbb94c6b48618"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'a40',
 'name': 'NVIDIA A40 48GB',
 'aliases': ['nvidia-a40'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA102',
 'launch_year': {'value': 2020, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.6',
 'compute': {
  'units': {'value': 84, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1305 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '1740 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {'value': '74.8 TFLOP/s', 'source': ['a40-ds-copy', 'hmc'], 'status': 'spec'},
   'fp16': {
    'value': '149.7 TFLOP/s',
    'source': ['a40-ds-copy', 'hmc'],
    'status': 'spec',
    'note': 'datasheet 149.7 | 299.4*',
   },
   'bf16': {'value': '149.7 TFLOP/s', 'source': ['a40-ds-copy'], 'status': 'spec'},
   'int8': {'value': '299.3 TOP/s', 'source': ['a40-ds-copy'], 'status': 'spec'},
   'int4': {'value': '598.7 TOP/s', 'source': ['a40-ds-copy'], 'status': 'spec'},
  },
  'vector': {
   'fp64': {
    'value': '0.5846 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp32': {'value': '37.4 TFLOP/s', 'source': ['a40-ds-copy', 'hmc'], 'status': 'spec'},
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
   'ecc': 'inline',
   'capacity': {'value': '48 GB', 'source': ['a40-ds-copy'], 'status': 'spec'},
   'bandwidth': {'value': '696 GB/s', 'source': ['a40-ds-copy'], 'status': 'spec'},
  },
  'l2': {
   'capacity': {'value': '6 MiB', 'source': ['techpowerup', 'nv-ga102-wp-via'], 'status': 'secondary'},
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
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'NVLink 3',
   'bandwidth_per_direction': {
    'value': '56.25 GB/s',
    'source': ['a40-ds-copy'],
    'status': 'spec',
    'note': 'bridge, 112.5 GB/s bidirectional',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['a40-ds-copy'], 'status': 'spec'},
 'measured': {
  'hbm_bandwidth': {
   'read': {
    'value': '679 GB/s',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': '97.6% of 696',
   },
   'write': {'value': '679 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'scale': {'value': '658 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'triad': {'value': '663 GB/s', 'source': ['gpubenches'], 'status': 'measured'},
  },
  'l2_bandwidth': {
   'value': '2.43 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'gpu-cache, 0.9-6 MB',
  },
  'l1_bandwidth': {
   'value': '9.35 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '64 B/clk/SM at 1740 MHz for 32-bit loads, half of 128',
  },
  'vector': {
   'fp32': {
    'value': '23.4 TFLOP/s',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': '300 W cap, 1710-1725 MHz; half the 37.4 peak in this kernel',
   },
  },
  'launch': {
   'stream': {'value': '2.05 us', 'source': ['gpubenches'], 'status': 'measured'},
   'graph': {'value': '1.1 us', 'source': ['gpubenches'], 'status': 'measured'},
  },
 },
 'sources': {
  'a40-ds-copy': 'Copy of the A40 datasheet table. https://www.ecer.com/corp/details-uuuedqa-p1bsay9-multi-display-setups-supported-by-48gb-gddr6-ecc-memory-nvidia-a40-gpu-and-vga-outputs.html',
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ga102-wp-via': 'GA102 whitepaper (RTX 3090, A6000). https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
