"""Compiled from hardware_specs/rtx-pro-6000-server.yaml by `python -m perfmodel.compiled`."""

HASH = "1abc95b5cc38f4c8"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'rtx-pro-6000-server',
 'name': 'NVIDIA RTX PRO 6000 Blackwell Server 96GB',
 'aliases': [
  'nvidia-rtx-pro-6000-blackwell',
  'rtx-pro-6000',
  'nvidia-rtx-pro-6000-blackwell-server-edition',
 ],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB202',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute_capability': '12.0',
 'compute': {
  'units': {'value': 188, 'source': ['xla-specs', 'pro6000-meas'], 'status': 'config'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'boost': {
    'value': '2617 MHz',
    'source': ['pro6000-meas'],
    'status': 'config',
    'note': 'reported by the Workstation card; the Server card runs on the same chip',
   },
  },
  'matrix': {
   'tf32': {
    'value': '251.9 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '504 TFLOP/s',
    'source': ['pro6000-meas'],
    'status': 'derived',
    'note': '1024 FLOP/clk/SM measured, full rate with FP32 accumulate (GeForce is half); llm-calc row 252 is wrong',
   },
   'bf16': {'value': '504 TFLOP/s', 'source': ['pro6000-meas'], 'status': 'derived'},
   'fp8': {
    'value': '1008 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp4': {
    'value': '2000 TFLOP/s',
    'source': ['pro6000-sec'],
    'status': 'secondary',
    'note': '4000 TOPS headline is sparse',
   },
   'int8': {
    'value': '1008 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '1.968 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp32': {'value': '125 TFLOP/s', 'source': ['pro6000-sec'], 'status': 'secondary'},
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
   'capacity': {'value': '96 GB', 'source': ['pro6000-sec'], 'status': 'secondary'},
   'bandwidth': {
    'value': '1.597 TB/s',
    'source': ['nv-pro6000-server-ds'],
    'status': 'secondary',
    'note': '512 bit at a lower memory clock than the 1.792 TB/s of the Workstation card',
   },
  },
  'l2': {
   'capacity': {'value': '128 MiB', 'source': ['xla-specs', 'pro6000-sec'], 'status': 'config'},
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
 'tdp': {'value': '600 W', 'source': ['ml-engineering', 'llm-calc'], 'status': 'via'},
 'measured': {
  'l2_bandwidth': {
   'value': '7.6 TB/s',
   'source': ['tilesight'],
   'status': 'measured',
   'note': '7.4 to 7.6 TB/s, Workstation card',
  },
 },
 'notes': [
  'XLA config gives shared_memory_per_core 131072; CUDA limit is 100 KB per SM (cccl-traits).',
 ],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-pro6000-server-ds': 'NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet, quoted second-hand',
  'nv-rtxbw-wp-via': 'RTX Blackwell whitepaper V1.1 Appendix A Table 3 (RTX 5090); also cited by pytorch/ao. https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf',
  'pro6000-meas': 'RTX PRO 6000 measurements: 1024 FLOP/clk/SM BF16 = 504 TFLOPS at 2617 MHz; 600 W cap gives 2.18-2.35 GHz; torch matmul 360-390; copy 1.46 TB/s',
  'pro6000-sec': 'RTX PRO 6000: 188 SMs, 125 TFLOPS FP32, 4000 TOPS FP4 (sparse), 128 MB L2. https://www.topcpu.net/es/news/nvidia-launches-96gb-rtx-5090-model-with-a-whopping-price-tag-of-10000',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
