"""Compiled from hardware_specs/mi210.yaml by `python -m perfmodel.compiled`."""

HASH = "15873caa34c97fa3"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi210',
 'name': 'AMD Instinct MI210 64GB',
 'aliases': ['amd-mi210', 'amd-instinct-mi210'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA2',
 'launch_year': {'value': 2022, 'source': ['memory'], 'status': 'unverified'},
 'target': 'gfx90a',
 'compute': {
  'units': {'value': 104, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {'boost': {'value': '1700 MHz', 'source': ['rocm-mi250'], 'status': 'spec'}},
  'matrix': {
   'fp64': {'value': '45.3 TFLOP/s', 'source': ['rocm-mi250', 'pt-deviceinfo'], 'status': 'spec'},
   'fp32': {'value': '45.3 TFLOP/s', 'source': ['rocm-mi250'], 'status': 'spec'},
   'fp16': {'value': '181 TFLOP/s', 'source': ['pt-deviceinfo', 'hmc'], 'status': 'secondary'},
   'bf16': {'value': '181 TFLOP/s', 'source': ['pt-deviceinfo', 'hmc'], 'status': 'secondary'},
   'int8': {'value': '181 TOP/s', 'source': ['pt-deviceinfo', 'hmc'], 'status': 'secondary'},
  },
  'vector': {
   'fp64': {'value': '22.6 TFLOP/s', 'source': ['rocm-mi250', 'hmc'], 'status': 'spec'},
   'fp32': {
    'value': '22.6 TFLOP/s',
    'source': ['rocm-mi250'],
    'status': 'spec',
    'note': 'packed FP32 45.3',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp64': 256, 'fp32': 256, 'fp16': 1024, 'bf16': 1024, 'int8': 1024},
   'source': ['rocm-mi250'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 128},
   'source': ['rocm-mi250'],
   'status': 'spec',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {
    'value': '16 /clk',
    'source': ['tilesight'],
    'status': 'secondary',
    'note': 'spec column; 1.1 of 2.8 T exp/s measured',
   },
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2e',
   'capacity': {'value': '64 GB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '1.6384 TB/s',
    'source': ['rocm-mi250'],
    'status': 'spec',
    'note': '1.6 TB/s per GCD',
   },
  },
  'l2': {
   'capacity': {'value': '8 MiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '6.963 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '32 channels x 128 B/clk x 1700 MHz (128 B/clk unverified)',
   },
   'shared_by_all': True,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '64 KiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
   'max_per_block': {'value': '64 KiB', 'source': ['memory'], 'status': 'unverified'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {'value': '16 KiB', 'source': ['rocm-archspecs'], 'status': 'spec'},
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
  'l1': {
   'value': '125 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '1700 MHz',
  },
  'l2': {
   'value': '238 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '1700 MHz',
  },
  'hbm': {
   'value': '660 cycles',
   'at_clock': '1700 MHz',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '1700 MHz',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric bridge',
   'bandwidth_per_direction': {
    'value': '150 GB/s',
    'source': ['rocm-mi250'],
    'status': 'derived',
    'note': '3 links x 50 GB/s',
   },
  },
 },
 'tdp': {'value': '300 W', 'source': ['hmc'], 'status': 'secondary'},
 'measured': {
  'hbm_bandwidth': {
   'read': {'value': '1.366 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'write': {'value': '1.539 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'scale': {'value': '1.399 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
   'triad': {'value': '1.305 TB/s', 'source': ['gpubenches'], 'status': 'measured'},
  },
  'l2_bandwidth': {
   'value': '5.1 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '<4 MB; 4250 at 8-12 MB',
  },
  'l1_bandwidth': {
   'value': '10.57 TB/s',
   'source': ['gpubenches'],
   'status': 'measured',
   'note': '64 B/clk/CU = 11.3 TB/s',
  },
  'matrix': {
   'fp16': {
    'value': '167 TFLOP/s',
    'source': ['tilesight'],
    'status': 'measured',
    'note': 'short microbenchmark',
   },
  },
  'special_function': {'value': '1.1 Texp/s', 'source': ['tilesight'], 'status': 'measured'},
  'launch': {
   'stream': {
    'value': '2.1 us',
    'source': ['gpubenches'],
    'status': 'measured',
    'note': 'hipGraph gives no gain here',
   },
   'graph': {'value': '2.05 us', 'source': ['gpubenches'], 'status': 'measured'},
  },
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'gpubenches': 'gpu-benches result files: gpu-stream, gpu-latency, gpu-cache, gpu-l2-cache, gpu-small-kernels. https://github.com/te42kyfo/gpu-benches/tree/1c36d509ee717dca9215c27135fa1e611bb03ed1',
  'hmc': 'hmc-tech GPU pages: dense rates, clocks including the tensor clock. https://hmc-tech.com/gpus',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'pt-deviceinfo': 'PyTorch inductor device_info (its H100 and L4 rows are sparse figures and are not used). https://github.com/pytorch/pytorch/blob/00604d0f7e9adbfb6a6ef06f375007945118044d/torch/_inductor/analysis/device_info.py',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-mi250': 'ROCm MI250 microarchitecture: FLOPS/clock/CU, 1.7 GHz, 1.6 TB/s per GCD, IF link 50 GB/s per direction. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/conceptual/gpu-arch/mi250.md',
  'tilesight': 'TileSight, Table 3: microbenchmark-calibrated FP32, FP16 tensor, exp, L2 and DRAM rates',
 },
}
