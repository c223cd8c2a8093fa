"""Compiled from hardware_specs/gb300.yaml by `python -m perfmodel.compiled`."""

HASH = "8dd58446a72bdb30"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gb300',
 'name': 'NVIDIA GB300 (per Blackwell Ultra GPU) 288GB',
 'aliases': ['nvidia-gb300'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell Ultra GB300',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute_capability': '10.3',
 'compute': {
  'units': {'value': 152, 'source': ['xla-specs'], 'status': 'config'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'boost': {'value': '2070 MHz', 'source': ['xla-specs'], 'status': 'config'},
   'tensor': {'value': '1933 MHz', 'source': ['xla-specs'], 'status': 'config'},
  },
  'matrix': {
   'tf32': {
    'value': '1250 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp16': {
    'value': '2500 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'bf16': {
    'value': '2500 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp8': {
    'value': '5000 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp6': {
    'value': '5000 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp4': {
    'value': '15000 TFLOP/s',
    'source': ['nv-bultra-blog', 'ml-engineering', 'verda-gb300'],
    'status': 'spec',
    'note': 'dense NVFP4',
   },
   'int8': {'value': '165 TOP/s', 'source': ['verda-gb300'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {
    'value': '1.3 TFLOP/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '152 x 2 x 2 x 2070 MHz = 1.26',
   },
   'fp32': {
    'value': '80 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {
    'tf32': 4096,
    'fp16': 8192,
    'bf16': 8192,
    'fp8': 16384,
    'fp6': 16384,
    'fp4': 49152,
    'int8': 512,
   },
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
   'per_clock_per_unit': {'value': '32 /clk', 'source': ['nv-softmax-blog', 'verda-gb300'], 'status': 'derived'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM3e',
   'capacity': {
    'value': '288 GB',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': 'Verda 279',
   },
   'bandwidth': {
    'value': '8 TB/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
    'note': 'XLA 7928',
   },
  },
  'l2': {
   'capacity': {'value': '129.25 MiB', 'source': ['xla-specs'], 'status': 'config'},
   'partitions': {'value': 2, 'source': ['cc-b200'], 'status': 'secondary', 'note': 'two dies'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '228 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '227 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'reserved_per_block': {'value': '1 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['fa4', 'fa4-expl', 'b300-ref'],
    'status': 'measured',
    'note': 'B300 measured 38.4 TB/s = 99.8% of 148 x 128 B x 2.032 GHz',
   },
   'l1_capacity_per_unit': {
    'value': '256 KiB',
    'source': ['scaling-gpus'],
    'status': 'secondary',
    'note': 'L1 and shared memory together; plus 256 KB TMEM per SM',
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
   'name': 'NVLink-C2C',
   'bandwidth_per_direction': {
    'value': '450 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'shared by two GPUs per Grace; measured ~80% one way',
   },
  },
  'scale_up': {
   'name': 'NVLink 5',
   'bandwidth_per_direction': {
    'value': '900 GB/s',
    'source': ['ml-engineering-network', 'scaling-gpus'],
    'status': 'secondary',
    'note': '18 links x 50; 1800 GB/s bidirectional headline',
   },
  },
  'scale_out': {
   'name': '800 Gb/s NIC',
   'bandwidth_per_direction': {
    'value': '100 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'one per GPU, as in DGX B300',
   },
  },
 },
 'tdp': {'value': '1400 W', 'source': ['ml-engineering', 'verda-gb300'], 'status': 'secondary'},
 'measured': {
  'l2_bandwidth': {
   'value': '13.3 TB/s',
   'source': ['b300-ref'],
   'status': 'derived',
   'note': 'measured on B300, same L2; L2 reads on the wire; methods that let L1 help give 20.5 (TileSight, B200) and 23.9 TB/s',
  },
  'shared_bandwidth': {
   'value': '38.4 TB/s',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': 'measured on B300 HGX (148 SMs)',
  },
 },
 'peak_notes': {
  'vector.fp64': 'rounded from 1.26',
  'matrix': '2500 lies between the formula at 1933 MHz (2407) and at 2070 MHz (2578)',
 },
 'sources': {
  'b300-ref': 'B300 SXM6 AC microbenchmark reference (QuickRunCUDA): device query, bandwidths, latencies, launch costs. https://github.com/ademeure/QuickRunCUDA',
  'cc-b200': "Chips and Cheese, Nvidia's B200 (numbers quoted by besthub.dev). https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut",
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'fa4': 'FlashAttention-4: SFU count and smem bandwidth unchanged H100->B200; 1605 TFLOPS BF16 on B200. https://www.together.ai/blog/flashattention-4',
  'fa4-expl': 'FA4 explainer: smem 128 B/clk/SM, MUFU 16/clk/SM on B200. https://www.engineermaxxing.com/veanors/papers/flash-attention-4.html',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-bultra-blog': 'NVIDIA blog: Blackwell Ultra, 160 SMs full chip, 15 PFLOPS dense NVFP4. https://developer.nvidia.com/blog/inside-nvidia-blackwell-ultra-the-chip-powering-the-ai-factory-era',
  'nv-softmax-blog': 'NVIDIA blog: Blackwell Ultra doubles MUFU.EX2 (SFU) throughput over Blackwell. https://developer.nvidia.com/blog/making-softmax-more-efficient-with-nvidia-blackwell-ultra/',
  'scaling-gpus': 'How to Scale Your Model, GPUs chapter. https://github.com/jax-ml/scaling-book/blob/1a55377affc9ee8f10b549f689ad57e813623a7e/gpus.md',
  'verda-gb300': 'Verda: per-GPU table GB300/GB200/B300/B200 incl. SFU EX2 rate, INT8, TDP (no sparsity). https://verda.com/blog/gb300-nvl72-architecture',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
