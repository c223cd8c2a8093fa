"""Compiled from hardware_specs/gaudi3.yaml by `python -m perfmodel.compiled`."""

HASH = "0e27c937b8fd5285"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gaudi3',
 'name': 'Intel Gaudi 3 128GB',
 'aliases': ['intel-gaudi3', 'gaudi-3'],
 'vendor': 'Intel',
 'kind': 'accelerator',
 'architecture': 'Gaudi 3',
 'launch_year': {'value': 2024, 'source': ['ml-engineering'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 8,
   'source': ['gaudi3-hotchips', 'ml-engineering'],
   'status': 'spec',
   'note': '256 x 256 matrix engines; and 64 vector cores (TPC)',
  },
  'unit_name': 'MME',
  'clocks': {
   'boost': {
    'value': '1600 MHz',
    'source': ['ml-engineering'],
    'status': 'config',
    'note': 'device-reported; the 1835 TFLOPS spec needs 1750',
   },
  },
  'matrix': {
   'fp32': {'value': '229 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'tf32': {'value': '459 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'fp16': {
    'value': '459 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': 'FP16 is far slower than BF16',
   },
   'bf16': {
    'value': '1677 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': 'shipping clock; Hot Chips slide 1835',
   },
   'fp8': {
    'value': '1677 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': 'same as BF16; slide 1835',
   },
  },
  'vector': {
   'bf16': {
    'value': '28.7 TFLOP/s',
    'source': ['gaudi3-hotchips'],
    'status': 'spec',
    'note': 'vector',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 131072, 'fp8': 131072},
   'source': ['formula'],
   'status': 'derived',
   'note': '256 x 256 multiply-adds per clock',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2e',
   'capacity': {'value': '128 GB', 'source': ['gaudi3-hotchips'], 'status': 'spec'},
   'bandwidth': {
    'value': '3.67 TB/s',
    'source': ['gaudi3-hotchips', 'ml-engineering'],
    'status': 'spec',
   },
  },
  'l2': {
   'label': 'L2 (4 x 24 MB)',
   'capacity': {
    'value': '96 MiB',
    'source': ['gaudi3-hotchips', 'ml-engineering'],
    'status': 'spec',
    'note': '4 x 24 MB L2 or one L3; L2 mode 2x faster',
   },
   'bandwidth': {
    'value': '12.8 TB/s',
    'source': ['gaudi3-hotchips'],
    'status': 'spec',
    'note': 'another article prints 19.2 TB/s',
   },
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {
    'value': '64 GB/s',
    'source': ['gaudi3-hotchips'],
    'status': 'spec',
    'note': '128 bidirectional',
   },
  },
  'scale_up': {
   'name': 'RoCE 24 x 200GbE',
   'bandwidth_per_direction': {
    'value': '600 GB/s',
    'source': ['gaudi3-hotchips', 'ml-engineering-network'],
    'status': 'spec',
    'note': '1200 bidirectional; 21 ports (525) in-node',
   },
  },
 },
 'tdp': {
  'value': '900 W',
  'source': ['gaudi3-hotchips', 'ml-engineering'],
  'status': 'spec',
  'note': '1200 liquid',
 },
 'measured': {
  'matrix': {
   'bf16': {
    'value': '1243 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '74.1% of 1677; best shape found (MAMF)',
   },
   'fp8': {
    'value': '1289.5 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': 'best shape found (MAMF)',
   },
  },
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'gaudi3-hotchips': 'Intel Hot Chips 2024 slides (text): Gaudi 1/2/3 table, Gaudi3 1835 BF16/FP8, vector 28.7, SRAM 96 MB 12.8 TB/s, HBM 3.67 TB/s, NIC 1200 GB/s bidirectional. https://www.sgpjbg.com/baogao/465025.html',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
 },
}
