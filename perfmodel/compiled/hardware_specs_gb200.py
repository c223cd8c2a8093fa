"""Compiled from hardware_specs/gb200.yaml by `python -m perfmodel.compiled`."""

HASH = "9d73f15fc90d92c2"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gb200',
 'name': 'NVIDIA GB200 (per Blackwell GPU) 186GB',
 'aliases': ['nvidia-gb200'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell GB100',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute_capability': '10.0',
 'compute': {
  'units': {'value': 152, 'source': ['xla-specs'], 'status': 'config'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'boost': {'value': '2062 MHz', 'source': ['xla-specs'], 'status': 'config'},
   'tensor': {'value': '1926 MHz', 'source': ['xla-specs'], 'status': 'config'},
  },
  'matrix': {
   'fp64': {
    'value': '40 TFLOP/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'older table 45 (launch)',
   },
   'tf32': {
    'value': '1250 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'fp16': {
    'value': '2500 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'bf16': {
    'value': '2500 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'fp8': {
    'value': '5000 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'fp6': {
    'value': '5000 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'fp4': {
    'value': '10000 TFLOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
   'int8': {
    'value': '5000 TOP/s',
    'source': ['ml-engineering', 'lockwood-b200', 'llm-calc'],
    'status': 'secondary',
   },
  },
  'vector': {
   'fp64': {'value': '40 TFLOP/s', 'source': ['memory'], 'status': 'unverified'},
   'fp32': {
    'value': '80 TFLOP/s',
    'source': ['ml-engineering', 'scaling-gpus'],
    'status': 'secondary',
    'note': 'older table 90 (launch)',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {
    'fp64': 128,
    'tf32': 4096,
    'fp16': 8192,
    'bf16': 8192,
    'fp8': 16384,
    'fp6': 16384,
    'fp4': 32768,
    'int8': 16384,
   },
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['fa4', 'fa4-expl', 'tilesight'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM3e',
   'capacity': {
    'value': '186 GB',
    'source': ['nv-b200-ds-via', 'ml-engineering', 'llm-calc'],
    'status': 'via',
   },
   'bandwidth': {
    'value': '7.928 TB/s',
    'source': ['xla-specs'],
    'status': 'config',
    'note': 'datasheet 8 TB/s',
   },
  },
  'l2': {
   'capacity': {
    'value': '129.25 MiB',
    'source': ['xla-specs'],
    'status': 'config',
    'note': '135528448 B',
   },
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
    'status': 'secondary',
    'note': 'B300 measured 38.4 TB/s = 99.8% of 148 x 128 B x 2.032 GHz',
   },
   'l1_capacity_per_unit': {
    'value': '256 KiB',
    'source': ['scaling-gpus', 'cc-b200'],
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
 'latency': {
  'l1': {
   'value': '39 cycles',
   'at_clock': '1990 MHz',
   'source': ['cc-b200'],
   'status': 'measured',
   'note': 'Chips and Cheese B200, via besthub summary',
  },
  'l2': {
   'value': '150 ns',
   'source': ['cc-b200'],
   'status': 'measured',
   'note': 'approximate; cross-die is higher, bimodal; Chips and Cheese B200, via besthub summary',
  },
 },
 'links': {
  'host': {
   'name': 'NVLink-C2C',
   'bandwidth_per_direction': {
    'value': '450 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'NVLink-C2C 900 GB/s bidirectional, shared by two GPUs per Grace',
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
   'name': '400 Gb/s NIC',
   'bandwidth_per_direction': {
    'value': '50 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'one per GPU, as in DGX H100',
   },
  },
 },
 'tdp': {'value': '1200 W', 'source': ['nv-b200-ds-via', 'ml-engineering'], 'status': 'via'},
 'measured': {
  'l2_bandwidth': {
   'value': '13.3 TB/s',
   'source': ['b300-ref'],
   'status': 'derived',
   'note': 'measured on B300, same L2; L2 reads on the wire; methods that let L1 help give 20.5 (TileSight, B200) and 23.9 TB/s',
  },
  'matrix': {
   'bf16': {
    'value': '1822 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '72.9%; best shape found (MAMF)',
   },
   'fp8': {
    'value': '3615.6 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '72.3%; best shape found (MAMF)',
   },
  },
 },
 'peak_notes': {'matrix': '2500 lies between the formula at 1926 MHz (2398) and at 2062 MHz (2568)'},
 'sources': {
  'b300-ref': 'B300 SXM6 AC microbenchmark reference (QuickRunCUDA): device query, bandwidths, latencies, launch costs. https://github.com/ademeure/QuickRunCUDA',
  'cc-b200': "Chips and Cheese, Nvidia's B200 (numbers quoted by besthub.dev). https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut",
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'fa4': 'FlashAttention-4: SFU count and smem bandwidth unchanged H100->B200; 1605 TFLOPS BF16 on B200. https://www.together.ai/blog/flashattention-4',
  'fa4-expl': 'FA4 explainer: smem 128 B/clk/SM, MUFU 16/clk/SM on B200. https://www.engineermaxxing.com/veanors/papers/flash-attention-4.html',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'lockwood-b200': 'Glenn Lockwood: GB200 (1200 W) and HGX B200 (1000 W) dense/sparse table. https://glennklockwood.com/garden/processors/B200',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-b200-ds-via': 'NVIDIA Blackwell datasheet, individual GPU table: HGX B200 = 180 GB, 7.7 TB/s, <=1000 W; GB200 GPU = 186 GB, 8 TB/s, <=1200 W. https://www.primeline-solutions.com/media/categories/server/nach-gpu/nvidia-hgx-h200/nvidia-blackwell-b200-datasheet.pdf',
  'scaling-gpus': 'How to Scale Your Model, GPUs chapter. https://github.com/jax-ml/scaling-book/blob/1a55377affc9ee8f10b549f689ad57e813623a7e/gpus.md',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
