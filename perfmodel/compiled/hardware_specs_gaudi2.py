"""Compiled from hardware_specs/gaudi2.yaml by `python -m perfmodel.compiled`."""

HASH = "cf09ca28ed13ede1"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'gaudi2',
 'name': 'Intel Gaudi 2 96GB',
 'aliases': ['intel-gaudi2', 'gaudi-2'],
 'vendor': 'Intel',
 'kind': 'accelerator',
 'architecture': 'Gaudi 2',
 'launch_year': {'value': 2022, 'source': ['ml-engineering'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 2,
   'source': ['ml-engineering'],
   'status': 'secondary',
   'note': '256 x 256 matrix engines; and 24 vector cores (TPC)',
  },
  'unit_name': 'MME',
  'clocks': {'boost': {'value': '1650 MHz', 'source': ['ml-engineering'], 'status': 'secondary'}},
  'matrix': {
   'bf16': {
    'value': '432 TFLOP/s',
    'source': ['gaudi3-hotchips', 'ml-engineering', 'gaudi3-pcguia'],
    'status': 'spec',
   },
   'fp8': {
    'value': '865 TFLOP/s',
    'source': ['ml-engineering', 'llm-calc'],
    'status': 'secondary',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 131072, 'fp8': 262144},
   'source': ['formula'],
   'status': 'derived',
   'note': '256 x 256 multiply-adds per clock',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2e',
   'capacity': {'value': '96 GB', 'source': ['gaudi3-hotchips', 'ml-engineering'], 'status': 'spec'},
   'bandwidth': {
    'value': '2.46 TB/s',
    'source': ['gaudi3-hotchips', 'ml-engineering'],
    'status': 'spec',
   },
  },
  'l2': {
   'label': 'SRAM',
   'capacity': {
    'value': '48 MiB',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': 'software-managed SRAM',
   },
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {
    'value': '32 GB/s',
    'source': ['gaudi3-hotchips'],
    'status': 'spec',
    'note': '64 bidirectional',
   },
  },
  'scale_up': {
   'name': 'RoCE, 21 of 24 x 100GbE',
   'bandwidth_per_direction': {
    'value': '262.5 GB/s',
    'source': ['ml-engineering'],
    'status': 'secondary',
    'note': '24 ports = 300 GB/s per direction (gaudi3-hotchips 4.8 Tb/s bidirectional)',
   },
  },
 },
 'tdp': {'value': '600 W', 'source': ['gaudi3-hotchips', 'ml-engineering'], 'status': 'spec'},
 'measured': {
  'matrix': {
   'bf16': {
    'value': '418.7 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '96.9%; best shape found (MAMF)',
   },
   'fp8': {
    'value': '826.5 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '95.5%; best shape found (MAMF)',
   },
  },
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'gaudi3-hotchips': 'Intel Hot Chips 2024 slides (text): Gaudi 1/2/3 table, Gaudi3 1835 BF16/FP8, vector 28.7, SRAM 96 MB 12.8 TB/s, HBM 3.67 TB/s, NIC 1200 GB/s bidirectional. https://www.sgpjbg.com/baogao/465025.html',
  'gaudi3-pcguia': 'Gaudi 2/3: 432 BF16, 865 (printed 835) FP8, 600 W / 900 W. https://pcguia.pt/2024/04/nvidia-e-amd-tem-um-novo-rival-no-mercado-de-ia-a-intel',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
 },
}
