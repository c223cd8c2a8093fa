"""Compiled from hardware_specs/mi325x.yaml by `python -m perfmodel.compiled`."""

HASH = "d83a9853b13b3684"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi325x',
 'name': 'AMD Instinct MI325X 256GB',
 'aliases': ['amd-mi325x', 'amd-instinct-mi325x'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA3',
 'launch_year': {'value': 2024, 'source': ['llm-calc'], 'status': 'secondary'},
 'target': 'gfx942',
 'compute': {
  'units': {'value': 304, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {'boost': {'value': '2100 MHz', 'source': ['ml-engineering'], 'status': 'secondary'}},
  'matrix': {
   'fp64': {'value': '163.4 TFLOP/s', 'source': ['rocm-mi300'], 'status': 'spec'},
   'fp32': {'value': '163.4 TFLOP/s', 'source': ['rocm-mi300'], 'status': 'spec'},
   'tf32': {
    'value': '653.7 TFLOP/s',
    'source': ['rocm-mi300', 'ml-engineering'],
    'status': 'spec',
   },
   'fp16': {
    'value': '1307.4 TFLOP/s',
    'source': ['rocm-mi300', 'ml-engineering', 'torchao-roofline'],
    'status': 'spec',
   },
   'bf16': {
    'value': '1307.4 TFLOP/s',
    'source': ['rocm-mi300', 'ml-engineering'],
    'status': 'spec',
   },
   'fp8': {
    'value': '2614.9 TFLOP/s',
    'source': ['rocm-mi300', 'pt-deviceinfo'],
    'status': 'spec',
    'note': 'FNUZ encodings on gfx942',
   },
   'int8': {'value': '2614.9 TOP/s', 'source': ['rocm-mi300', 'pt-deviceinfo'], 'status': 'spec'},
  },
  'vector': {
   'fp64': {'value': '81.7 TFLOP/s', 'source': ['rocm-mi300'], 'status': 'spec'},
   'fp32': {'value': '163.4 TFLOP/s', 'source': ['rocm-mi300'], 'status': 'spec'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {
    'fp64': 256,
    'fp32': 256,
    'tf32': 1024,
    'fp16': 2048,
    'bf16': 2048,
    'fp8': 4096,
    'int8': 4096,
   },
   'source': ['rocm-mi300'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 256},
   'source': ['rocm-mi300'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {
    'value': '16 /clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'transcendentals are quarter rate on a 64-lane CU',
   },
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM3e',
   'capacity': {'value': '256 GB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {'value': '6 TB/s', 'source': ['ml-engineering', 'llm-calc'], 'status': 'secondary'},
  },
  'llc': {
   'label': 'Infinity Cache',
   'capacity': {'value': '256 MiB', 'source': ['rocm-archspecs', 'ml-engineering'], 'status': 'spec'},
   'bandwidth': {
    'value': '17.2 TB/s',
    'source': ['cdna3-wp', 'sth-mi300'],
    'status': 'spec',
    'note': '128 channels x 64 B/clk; memory-side cache, holds no dirty data',
   },
   'shared_by_all': True,
  },
  'l2': {
   'capacity': {'value': '32 MiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '34.4 TB/s',
    'source': ['cdna3-wp'],
    'status': 'spec',
    'note': '8 XCD x 16 channels x 128 B/clk x 2100 MHz; Figure 6 prints 51.6 TB/s, which fits reads plus 64 B/clk writes',
   },
   'partitions': {
    'value': 8,
    'source': ['rocm-archspecs'],
    'status': 'spec',
    'note': '4 MiB private to each XCD',
   },
   'shared_by_all': False,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['rocm-archspecs', 'cdna3-wp'], 'status': 'spec'},
   'max_per_block': {'value': '64 KiB', 'source': ['xla-specs'], 'status': 'config'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {'value': '32 KiB', 'source': ['rocm-archspecs', 'cdna3-wp'], 'status': 'spec'},
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2048,
  'max_warps_per_unit': 32,
  'max_threads_per_block': 1024,
  'registers_per_unit': 131072,
  'max_registers_per_thread': 512,
  'source': ['rocm-archspecs', 'memory'],
  'status': 'unverified',
  'note': 'registers from the ROCm documentation, wave limits from memory; max_registers_per_thread counts vector registers per lane',
 },
 'latency': {
  'llc': {
   'value': '218 ns',
   'source': ['cc-mi300x-via'],
   'status': 'measured',
   'note': 'second-hand',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric (xGMI)',
   'bandwidth_per_direction': {
    'value': '448 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '7 x 64',
   },
  },
 },
 'tdp': {'value': '1000 W', 'source': ['ml-engineering', 'rocm-taf'], 'status': 'via'},
 'measured': {
  'llc_bandwidth': {
   'value': '11.9 TB/s',
   'source': ['cc-mi300x-via'],
   'status': 'measured',
   'note': 'measured on MI300X',
  },
  'matrix': {
   'fp16': {
    'value': '787 TFLOP/s',
    'source': ['rocm-taf'],
    'status': 'measured',
    'note': 'normal-distribution inputs, 1000 W',
   },
   'bf16': {
    'value': '831 TFLOP/s',
    'source': ['rocm-taf'],
    'status': 'measured',
    'note': 'normal-distribution inputs, 1000 W',
   },
   'fp8': {
    'value': '1409 TFLOP/s',
    'source': ['rocm-taf'],
    'status': 'measured',
    'note': 'normal-distribution inputs, 1000 W',
   },
  },
 },
 'notes': ['CDNA3 white paper: up to 8K sparse = 4K dense FP8/INT8 operations per clock per CU.'],
 'sources': {
  'cc-mi300x-via': "Chips and Cheese, Testing AMD's Giant MI300X. https://chipsandcheese.com/p/testing-amds-giant-mi300x",
  'cdna3-wp': 'AMD CDNA 3 white paper. https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'pt-deviceinfo': 'PyTorch inductor device_info (its H100 and L4 rows are sparse figures and are not used). https://github.com/pytorch/pytorch/blob/00604d0f7e9adbfb6a6ef06f375007945118044d/torch/_inductor/analysis/device_info.py',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi300': 'ROCm MI300 microarchitecture: FLOPS/clock/CU and peaks. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi300.md',
  'rocm-taf': 'AMD on rocm.blogs.amd.com, achievable FLOPS of MI325X and the effect of input data',
  'sth-mi300': 'ServeTheHome: MI300X Infinity Cache 17 TB/s peak. https://servethehome.com/amd-instinct-mi300x-gpu-and-mi300a-apus-launched-for-ai-era/3',
  'torchao-roofline': 'torchao roofline_utils: peaks, 0.78 achievable GEMM, 0.92 achievable memory bandwidth, 2 us kernel overhead. https://github.com/pytorch/ao/blob/0598012907d6f6e88734088a65f788c38d294a65/torchao/testing/training/roofline_utils.py',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
