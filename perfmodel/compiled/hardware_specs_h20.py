"""Compiled from hardware_specs/h20.yaml by `python -m perfmodel.compiled`."""

HASH = "d80c07beb77d77d6"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'h20',
 'name': 'NVIDIA H20 96GB',
 'aliases': ['nvidia-h20-sxm', 'h20-sxm', 'nvidia-h20'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Hopper GH100 (export)',
 'launch_year': {'value': 2023, 'source': ['memory'], 'status': 'unverified'},
 'compute_capability': '9.0',
 'compute': {
  'units': {'value': 78, 'source': ['h20-sec'], 'status': 'secondary', 'note': 'Geekbench report'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1980 MHz', 'source': ['memory'], 'status': 'unverified'}},
  'matrix': {
   'tf32': {'value': '74 TFLOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
   'fp16': {'value': '148 TFLOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
   'bf16': {'value': '148 TFLOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
   'fp8': {'value': '296 TFLOP/s', 'source': ['memory'], 'status': 'unverified'},
   'int8': {'value': '296 TOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {'value': '1 TFLOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
   'fp32': {'value': '44 TFLOP/s', 'source': ['h20-sec'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 2048, 'fp16': 4096, 'bf16': 4096, 'fp8': 8192, 'int8': 8192},
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
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['fa3', 'fa4', 'tilesight'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM3',
   'capacity': {'value': '96 GB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth': {'value': '4 TB/s', 'source': ['h20-sec'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {'value': '60 MiB', 'source': ['memory'], 'status': 'unverified'},
   'partitions': {'value': 2, 'source': ['gpubenches'], 'status': 'measured'},
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
    'source': ['gpubenches', 'fa4'],
    'status': 'measured',
    'note': 'unified L1 measured at 98% of 128 B/clk/SM; shared memory uses the same data path',
   },
   'l1_capacity_per_unit': {
    'value': '256 KiB',
    'source': ['scaling-gpus', 'gpubenches'],
    'status': 'secondary',
    'note': 'L1 and shared memory together',
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
  'shared': {
   'value': '29 cycles',
   'at_clock': '1755 MHz',
   'source': ['luo2024'],
   'status': 'measured',
   'note': 'measured on H800 PCIe',
  },
  'l1': {
   'value': '34.2 cycles',
   'at_clock': '1755 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on H100 PCIe (HBM2e)',
  },
  'l2': {
   'value': '265.5 cycles',
   'at_clock': '1755 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on H100 PCIe (HBM2e)',
  },
  'hbm': {
   'value': '655 cycles',
   'at_clock': '1755 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'measured on H100 PCIe (HBM2e)',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'NVLink 4',
   'bandwidth_per_direction': {
    'value': '450 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '900 GB/s bidirectional',
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
 'tdp': {'value': '400 W', 'source': ['memory'], 'status': 'unverified'},
 'measured': {
  'l2_bandwidth': {
   'value': '9.9 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'H200 SXM, gpu-l2-cache, 12 to 34 MB (10.7 TB/s at 3.5 MB)',
  },
 },
 'peak_notes': {
  'matrix': 'capped for export to about 23 % of the structure: 148 TFLOP/s would need 463 MHz',
  'vector.fp64': 'capped for export to 1 TFLOP/s',
  'vector.fp32': '44 TFLOP/s would need 2.2 GHz: the SM count (78) or the published peak is off',
 },
 'notes': ['Ridge point only ~37 FLOP/B: a useful decode-bound outlier.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'fa3': 'FlashAttention-3: 3.9 tera special functions/s on H100 SXM5 = 16/clk/SM x 132 x 1.83 GHz. https://arxiv.org/abs/2407.08608',
  'fa4': 'FlashAttention-4: SFU count and smem bandwidth unchanged H100->B200; 1605 TFLOPS BF16 on B200. https://www.together.ai/blog/flashattention-4',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'h20-sec': 'H20: 78 SMs, FP16 148, INT8 296, TF32 74, FP32 44, FP64 1 TFLOPS, 4.0 TB/s. https://zangshuxian.com/new/674733024499207168',
  'luo2024': 'Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, Tables IV and V. https://arxiv.org/abs/2402.13499',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'scaling-gpus': 'How to Scale Your Model, GPUs chapter. https://github.com/jax-ml/scaling-book/blob/1a55377affc9ee8f10b549f689ad57e813623a7e/gpus.md',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
