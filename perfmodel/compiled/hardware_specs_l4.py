"""Compiled from hardware_specs/l4.yaml by `python -m perfmodel.compiled`."""

HASH = "815447691cc895eb"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'l4',
 'name': 'NVIDIA L4 24GB',
 'aliases': ['nvidia-l4'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ada AD104',
 'launch_year': {'value': 2023, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.9',
 'compute': {
  'units': {
   'value': 58,
   'source': ['techpowerup'],
   'status': 'secondary',
   'note': '7424 cores / 128 = 58; the same page prints 60 SMs (full die)',
  },
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '795 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '2040 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '60.58 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp16': {
    'value': '121 TFLOP/s',
    'source': ['llm-calc', 'pt-deviceinfo'],
    'status': 'via',
    'note': 'product page prints 242 (sparse)',
   },
   'bf16': {'value': '121 TFLOP/s', 'source': ['llm-calc'], 'status': 'via'},
   'fp8': {
    'value': '242.5 TFLOP/s',
    'source': ['llm-calc', 'pt-deviceinfo'],
    'status': 'via',
    'note': 'product page 485 sparse',
   },
   'int8': {'value': '242.5 TOP/s', 'source': ['llm-calc'], 'status': 'via'},
   'int4': {
    'value': '484.6 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.4733 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'SMs x FMA/clk/SM x 2 x boost',
   },
   'fp32': {
    'value': '30.3 TFLOP/s',
    'source': ['techpowerup', 'pt-deviceinfo'],
    'status': 'secondary',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 512, 'fp16': 1024, 'bf16': 1024, 'fp8': 2048, 'int8': 2048, 'int4': 4096},
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
   'capacity': {'value': '24 GB', 'source': ['techpowerup'], 'status': 'secondary'},
   'bandwidth': {'value': '300 GB/s', 'source': ['llm-calc', 'techpowerup'], 'status': 'via'},
  },
  'l2': {
   'capacity': {'value': '48 MiB', 'source': ['techpowerup'], 'status': 'secondary'},
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
 'tdp': {'value': '72 W', 'source': ['llm-calc', 'techpowerup'], 'status': 'via'},
 'measured': {
  'matrix': {
   'fp16': {
    'value': '87 TFLOP/s',
    'source': ['l4-forum-via'],
    'status': 'measured',
    'note': 'NVIDIA developer forum measurement; 72 W cap',
   },
   'fp8': {'value': '188 TFLOP/s', 'source': ['l4-forum-via'], 'status': 'measured'},
   'int8': {'value': '165 TOP/s', 'source': ['l4-forum-via'], 'status': 'measured'},
  },
 },
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'l4-forum-via': 'NVIDIA forum measurement quoted: L4 87 TFLOPS FP16/FP32-acc, 188 FP8, 165 INT8',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ada-wp-via': 'Ada whitepaper v2.1 Appendix A Table 2 (RTX 4090). https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf',
  'pt-deviceinfo': 'PyTorch inductor device_info (its H100 and L4 rows are sparse figures and are not used). https://github.com/pytorch/pytorch/blob/00604d0f7e9adbfb6a6ef06f375007945118044d/torch/_inductor/analysis/device_info.py',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
