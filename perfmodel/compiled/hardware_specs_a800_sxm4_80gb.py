"""Compiled from hardware_specs/a800-sxm4-80gb.yaml by `python -m perfmodel.compiled`."""

HASH = "ecfdc81e1806ff08"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'a800-sxm4-80gb',
 'name': 'NVIDIA A800 SXM4 80GB',
 'aliases': ['a800', 'a800-sxm', 'nvidia-a800', 'nvidia-a800-sxm4-80gb'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ampere GA100 (export)',
 'launch_year': {'value': 2022, 'source': ['nv-a800-ds'], 'status': 'unverified'},
 'compute_capability': '8.0',
 'compute': {
  'units': {'value': 108, 'source': ['nv-a100-blog'], 'status': 'derived'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1410 MHz', 'source': ['nv-a100-blog'], 'status': 'derived'}},
  'matrix': {
   'fp64': {'value': '19.5 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'tf32': {'value': '156 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'fp16': {
    'value': '312 TFLOP/s',
    'source': ['nv-a100-blog', 'ml-engineering', 'lightning'],
    'status': 'derived',
   },
   'bf16': {
    'value': '312 TFLOP/s',
    'source': ['nv-a100-blog', 'ml-engineering'],
    'status': 'derived',
   },
   'int8': {
    'value': '624 TOP/s',
    'source': ['nv-a100-blog', 'ml-engineering'],
    'status': 'derived',
   },
   'int4': {'value': '1248 TOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
  },
  'vector': {
   'fp64': {'value': '9.7 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'fp32': {'value': '19.5 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'fp16': {'value': '78 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'bf16': {'value': '39 TFLOP/s', 'source': ['nv-a100-blog'], 'status': 'derived'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'tf32': 1024, 'fp16': 2048, 'bf16': 2048, 'int8': 4096, 'int4': 8192},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 64, 'fp32': 128, 'fp16': 512, 'bf16': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '16 /clk', 'source': ['tilesight', 'sfu-notes'], 'status': 'measured'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2e',
   'capacity': {'value': '80 GB', 'source': ['nv-a100-wp-via'], 'status': 'derived'},
   'bandwidth': {
    'value': '2.039 TB/s',
    'source': ['nv-a100-wp-via'],
    'status': 'derived',
    'note': 'as A100 SXM4 80GB, the same board',
   },
  },
  'l2': {
   'capacity': {'value': '40 MiB', 'source': ['nv-a100-blog'], 'status': 'derived'},
   'bandwidth': {
    'value': '7.219 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '5120 x 1410 MHz',
   },
   'bytes_per_clock': {
    'value': '5120 B/clk',
    'source': ['nv-a100-wp-via'],
    'status': 'via',
    'note': 'whitepaper p. 35',
   },
   'partitions': {
    'value': 2,
    'source': ['gpubenches'],
    'status': 'measured',
    'note': '2 x 20 MB; effective replicated capacity ~20 MB',
   },
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '164 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {
    'value': '163 KiB',
    'source': ['cccl-traits'],
    'status': 'spec',
    'note': 'opt-in; 48 KB without opt-in',
   },
   'reserved_per_block': {'value': '1 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': 'unified L1 measured at 98% of 128 B/clk/SM; shared memory uses the same data path',
   },
   'l1_capacity_per_unit': {
    'value': '192 KiB',
    'source': ['nv-a100-blog', 'gpubenches'],
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
   'at_clock': '1410 MHz',
   'source': ['luo2024'],
   'status': 'measured',
  },
  'l1': {
   'value': '36 cycles',
   'at_clock': '1410 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
  },
  'l2': {
   'value': '211 cycles',
   'at_clock': '1410 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
  },
  'hbm': {
   'value': '571 cycles',
   'at_clock': '1410 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'NVLink 3',
   'bandwidth_per_direction': {
    'value': '200 GB/s',
    'source': ['nv-a800-ds'],
    'status': 'unverified',
    'note': '8 links, 400 GB/s bidirectional; A100 has 600',
   },
  },
 },
 'tdp': {'value': '400 W', 'source': ['nv-a800-ds'], 'status': 'unverified'},
 'measured': {
  'l2_bandwidth': {
   'value': '5.4 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'A100 80GB, gpu-l2-cache, 2-25 MB; falls to 3600 at 34 MB',
  },
 },
 'notes': ['Only NVLink differs from A100; every other fact is that of A100 SXM4 80GB.'],
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'lightning': 'Lightning throughput.py: halves the sparse H100 datasheet numbers. https://github.com/Lightning-AI/pytorch-lightning/blob/0810121fef07bc70c1bf4706a81ecb47d2e6ad17/src/lightning/fabric/utilities/throughput.py',
  'luo2024': 'Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, Tables IV and V. https://arxiv.org/abs/2402.13499',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-a100-blog': 'NVIDIA Ampere Architecture In-Depth, Tables 3 and 4 (P100, V100, A100). https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/',
  'nv-a100-wp-via': 'A100 whitepaper, as quoted with page numbers by a third-party preset file. https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf',
  'nv-a800-ds': 'NVIDIA A800: an A100 with 8 of 12 NVLinks, recalled from memory; check before use',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
