"""Compiled from hardware_specs/rtx-pro-6000-max-q.yaml by `python -m perfmodel.compiled`."""

HASH = "956c47d2b1495962"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx-pro-6000-max-q',
 'name': 'NVIDIA RTX PRO 6000 Blackwell Max-Q 96GB',
 'aliases': ['rtx-pro-6000-maxq', 'nvidia-rtx-pro-6000-max-q', 'rtx-pro-6000-blackwell-max-q'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB202',
 'launch_year': {'value': 2025, 'source': ['technical-city'], 'status': 'secondary'},
 'compute_capability': '12.0',
 'compute': {
  'units': {'value': 188, 'source': ['technical-city'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1590 MHz', 'source': ['technical-city'], 'status': 'secondary'},
   'boost': {'value': '2288 MHz', 'source': ['technical-city'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '220.2 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '440.5 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'bf16': {
    'value': '440.5 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp8': {
    'value': '880.9 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp4': {
    'value': '1762 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'int8': {
    'value': '880.9 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '1.721 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '110.1 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 512, 'fp16': 1024, 'bf16': 1024, 'fp8': 2048, 'fp4': 4096, 'int8': 2048},
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
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['tilesight'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR7',
   'capacity': {'value': '96 GB', 'source': ['xla-specs', 'pro6000-sec'], 'status': 'derived'},
   'bandwidth': {
    'value': '1.792 TB/s',
    'source': ['xla-specs', 'pro6000-sec'],
    'status': 'derived',
    'note': 'as the Workstation card',
   },
  },
  'l2': {
   'capacity': {'value': '128 MiB', 'source': ['technical-city'], 'status': 'secondary'},
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
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '128 KiB',
    'source': ['nv-rtxbw-wp-via'],
    'status': 'secondary',
    'note': 'L1 and shared memory together; no TMEM, no tcgen05',
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
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'tdp': {'value': '300 W', 'source': ['technical-city'], 'status': 'secondary'},
 'measured': {
  'l2_bandwidth': {
   'value': '7.6 TB/s',
   'source': ['tilesight'],
   'status': 'measured',
   'note': '7.4 to 7.6 TB/s, Workstation card',
  },
 },
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-rtxbw-wp-via': 'RTX Blackwell whitepaper V1.1 Appendix A Table 3 (RTX 5090); also cited by pytorch/ao. https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf',
  'pro6000-sec': 'RTX PRO 6000: 188 SMs, 125 TFLOPS FP32, 4000 TOPS FP4 (sparse), 128 MB L2. https://www.topcpu.net/es/news/nvidia-launches-96gb-rtx-5090-model-with-a-whopping-price-tag-of-10000',
  'technical-city': 'technical.city card pages, derived from TechPowerUp. https://technical.city/en/video',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
