"""Compiled from hardware_specs/l40s.yaml by `python -m perfmodel.compiled`."""

HASH = "51c54606a3522499"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'l40s',
 'name': 'NVIDIA L40S 48GB',
 'aliases': ['nvidia-l40s'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Ada AD102',
 'launch_year': {'value': 2023, 'source': ['techpowerup'], 'status': 'secondary'},
 'compute_capability': '8.9',
 'compute': {
  'units': {'value': 142, 'source': ['techpowerup'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1110 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
   'boost': {'value': '2520 MHz', 'source': ['techpowerup'], 'status': 'secondary'},
  },
  'matrix': {
   'tf32': {
    'value': '183 TFLOP/s',
    'source': ['l40s-ds-copy', 'ml-engineering'],
    'status': 'spec',
   },
   'fp16': {
    'value': '362.05 TFLOP/s',
    'source': ['l40s-ds-copy', 'ml-engineering'],
    'status': 'spec',
    'note': 'datasheet 362.05 | 733*',
   },
   'bf16': {
    'value': '362.05 TFLOP/s',
    'source': ['l40s-ds-copy', 'ml-engineering'],
    'status': 'spec',
   },
   'fp8': {
    'value': '733 TFLOP/s',
    'source': ['l40s-ds-copy', 'ml-engineering'],
    'status': 'spec',
    'note': '733 | 1466*',
   },
   'int8': {'value': '733 TOP/s', 'source': ['ml-engineering', 'hmc'], 'status': 'secondary'},
   'int4': {
    'value': '733 TOP/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'datasheet prints 733 | 1466* for INT4 too; formula gives 1466',
   },
  },
  'vector': {
   'fp64': {'value': '1.43 TFLOP/s', 'source': ['hmc'], 'status': 'secondary'},
   'fp32': {
    'value': '91.6 TFLOP/s',
    'source': ['l40s-ds-copy', 'ml-engineering'],
    'status': 'spec',
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
   'capacity': {'value': '48 GB', 'source': ['l40s-ds-copy'], 'status': 'spec'},
   'bandwidth': {'value': '864 GB/s', 'source': ['l40s-ds-copy'], 'status': 'spec'},
  },
  'l2': {
   'capacity': {
    'value': '96 MiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L40 page 96; one L40S page prints 48',
   },
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
 'tdp': {
  'value': '350 W',
  'source': ['l40s-ds-copy', 'ml-engineering'],
  'status': 'spec',
  'note': 'some third-party pages print 300',
 },
 'measured': {
  'l2_bandwidth': {
   'value': '5.2 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': 'L40 (142 SMs, 2490 MHz), gpu-l2-cache, flat to ~76 MB',
  },
 },
 'peak_notes': {
  'matrix.int4': 'the data sheet repeats the INT8 number for INT4; the structure gives 1466 TOP/s',
 },
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'formula': 'Computed from other facts of the same file; the note says how',
  'ga102-wp-smem': 'NVIDIA GA102 whitepaper as quoted: shared memory 128 B/clk/SM, against 64 in Turing',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'l40s-ds-copy': 'Copy of the L40/L40S datasheet table, dense|sparse. https://www.mullet.se/product.html?product_id=355414',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nv-ada-wp-via': 'Ada whitepaper v2.1 Appendix A Table 2 (RTX 4090). https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf',
  'sfu-notes': 'Third-party notes: 16 SFUs per SM (4 per sub-partition)',
  'techpowerup': 'TechPowerUp-derived comparison pages: sysrqmts.com, fpsbench.com, topcpu.net',
 },
}
