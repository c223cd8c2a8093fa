"""Compiled from hardware_specs/b300.yaml by `python -m perfmodel.compiled`."""

HASH = "486fe5faea404c98"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'b300',
 'name': 'NVIDIA B300 (HGX/DGX) 288GB',
 'aliases': ['nvidia-b300-hgx', 'nvidia-b300', 'b300-sxm', 'b300-hgx'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Blackwell Ultra GB300',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute_capability': '10.3',
 'compute': {
  'units': {
   'value': 148,
   'source': ['b300-ref'],
   'status': 'config',
   'note': 'multiProcessorCount on B300 SXM6 AC; full chip 160; XLA b300 file says 158 (wrong for this SKU), GB300 152',
  },
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'boost': {
    'value': '2032 MHz',
    'source': ['b300-ref'],
    'status': 'config',
    'note': '2032 peak, 1920 sustained, 1860 L2/crossbar clock',
   },
   'tensor': {
    'value': '1856 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': '2250e12/(148 x 8192)',
   },
  },
  'matrix': {
   'tf32': {
    'value': '1125 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp16': {
    'value': '2250 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'bf16': {
    'value': '2250 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp8': {
    'value': '4500 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp6': {
    'value': '4500 TFLOP/s',
    'source': ['ml-engineering', 'verda-gb300'],
    'status': 'secondary',
   },
   'fp4': {
    'value': '14000 TFLOP/s',
    'source': ['verda-gb300'],
    'status': 'secondary',
    'note': 'ml-engineering: fp4 12600 / nvfp4 15000; NVIDIA blog 15000 for the full chip',
   },
   'int8': {
    'value': '150 TOP/s',
    'source': ['verda-gb300'],
    'status': 'secondary',
    'note': 'INT8 tensor cut ~30x vs B200; ml-engineering prints 4500 (wrong)',
   },
  },
  'vector': {
   'fp64': {
    'value': '1.25 TFLOP/s',
    'source': ['ml-engineering', 'b300-ref'],
    'status': 'secondary',
    'note': 'HGX B300 table 10/8; measured 1.20 = 148 x 2 FMA x 2 x 2032 MHz',
   },
   'fp32': {
    'value': '75 TFLOP/s',
    'source': ['verda-gb300'],
    'status': 'secondary',
    'note': 'ml-engineering: 80',
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
    'source': ['ml-engineering', 'b300-ref'],
    'status': 'secondary',
    'note': 'B300 SXM6 AC reports 275040 MiB = 268.6 GiB; Verda 270 usable; XLA 277 GiB',
   },
   'bandwidth': {
    'value': '7.672 TB/s',
    'source': ['b300-ref', 'verda-gb300'],
    'status': 'config',
    'note': 'B300 SXM6 AC: 7680 bit x 3996 MHz x 2; NVIDIA prints 8 TB/s (8192 bit); Verda 7.7; XLA 7936',
   },
  },
  'l2': {
   'capacity': {
    'value': '126.5 MiB',
    'source': ['b300-ref'],
    'status': 'config',
    'note': '132644864 B device query; XLA file says 129.25',
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
 'latency': {
  'l1': {
   'value': '39 cycles',
   'at_clock': '1965 MHz',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': 'SM cycles at 1920-2032 MHz',
  },
  'l2': {
   'value': '305 cycles',
   'at_clock': '1965 MHz',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': '300-310 average; near 310, far 660; SM cycles at 1920-2032 MHz',
  },
  'hbm': {
   'value': '704 cycles',
   'at_clock': '1965 MHz',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': 'SM cycles at 1920-2032 MHz',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 6 x16',
   'bandwidth_per_direction': {
    'value': '121 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'link trains as Gen6 x16; measured only 57.7 GB/s H2D on a Gen5 host',
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
 'tdp': {
  'value': '1100 W',
  'source': ['verda-gb300', 'b300-ref'],
  'status': 'secondary',
  'note': 'NVML range 200-1100 W; ml-engineering: 1000 W TGP',
 },
 'measured': {
  'hbm_bandwidth': {
   'read': {'value': '7.3 TB/s', 'source': ['b300-ref'], 'status': 'measured'},
   'copy': {'value': '6.93 TB/s', 'source': ['b300-ref'], 'status': 'measured'},
   'mixed': {'value': '6.68 TB/s', 'source': ['b300-ref'], 'status': 'measured'},
   'write': {'value': '7.57 TB/s', 'source': ['b300-ref'], 'status': 'measured'},
  },
  'l2_bandwidth': {
   'value': '13.3 TB/s',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': 'L2 reads on the wire; methods that let L1 help give 20.5 (TileSight, B200) and 23.9 TB/s',
  },
  'shared_bandwidth': {
   'value': '38.4 TB/s',
   'source': ['b300-ref'],
   'status': 'measured',
   'note': '99.8% of 38.5 at 2032 MHz',
  },
  'matrix': {
   'bf16': {
    'value': '1769 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': 'torch 2.9.1 cu130, 78.6%; best shape found (MAMF)',
   },
   'fp8': {
    'value': '3353.3 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '74.5%; best shape found (MAMF)',
   },
  },
  'vector': {
   'fp32': {
    'value': '74.6 TFLOP/s',
    'source': ['b300-ref'],
    'status': 'measured',
    'note': '97% of 77.0 at 2032 MHz; 62 at a locked 1920',
   },
  },
  'launch': {
   'stream': {
    'value': '1.78 us',
    'source': ['b300-ref'],
    'status': 'measured',
    'note': 'CUDA 13.2, driver 580',
   },
  },
 },
 'peak_notes': {
  'vector.fp64': '10 TFLOP/s for eight GPUs, rounded; 1.20 from structure and measured',
  'matrix.fp4': 'published as 12.6 to 15 PFLOP/s; 14 is taken, the structure gives 13.5 at the tensor clock',
  'matrix.int8': 'rated at the boost clock, 2032 MHz',
 },
 'notes': [
  'The exponential rate is doubled: 10.7 Texp/s published, against 5 on B200.',
  'The microbenchmarks come from one machine of one SKU (B300 SXM6 AC).',
  'XLA b300 config copies B200 FP64/INT8 rates and lists 158 SMs: wrong for this chip.',
 ],
 'sources': {
  'b300-ref': 'B300 SXM6 AC microbenchmark reference (QuickRunCUDA): device query, bandwidths, latencies, launch costs. https://github.com/ademeure/QuickRunCUDA',
  'cc-b200': "Chips and Cheese, Nvidia's B200 (numbers quoted by besthub.dev). https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut",
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'fa4': 'FlashAttention-4: SFU count and smem bandwidth unchanged H100->B200; 1605 TFLOPS BF16 on B200. https://www.together.ai/blog/flashattention-4',
  'fa4-expl': 'FA4 explainer: smem 128 B/clk/SM, MUFU 16/clk/SM on B200. https://www.engineermaxxing.com/veanors/papers/flash-attention-4.html',
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-softmax-blog': 'NVIDIA blog: Blackwell Ultra doubles MUFU.EX2 (SFU) throughput over Blackwell. https://developer.nvidia.com/blog/making-softmax-more-efficient-with-nvidia-blackwell-ultra/',
  'scaling-gpus': 'How to Scale Your Model, GPUs chapter. https://github.com/jax-ml/scaling-book/blob/1a55377affc9ee8f10b549f689ad57e813623a7e/gpus.md',
  'verda-gb300': 'Verda: per-GPU table GB300/GB200/B300/B200 incl. SFU EX2 rate, INT8, TDP (no sparsity). https://verda.com/blog/gb300-nvl72-architecture',
 },
}
