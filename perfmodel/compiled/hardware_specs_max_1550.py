"""Compiled from hardware_specs/max-1550.yaml by `python -m perfmodel.compiled`."""

HASH = "b2d890d43ace670b"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'max-1550',
 'name': 'Intel Data Center GPU Max 1550 128GB',
 'aliases': ['intel-max-1550', 'ponte-vecchio', 'pvc'],
 'vendor': 'Intel',
 'kind': 'gpu',
 'architecture': 'Xe-HPC (Ponte Vecchio)',
 'launch_year': {'value': 2023, 'source': ['geektopia-pvc'], 'status': 'secondary'},
 'compute': {
  'units': {
   'value': 128,
   'source': ['lockwood-pvc', 'geektopia-pvc'],
   'status': 'secondary',
   'note': '2 stacks x 64; 8 vector and 8 matrix engines each',
  },
  'unit_name': 'Xe-core',
  'clocks': {
   'base': {'value': '900 MHz', 'source': ['lockwood-pvc'], 'status': 'secondary'},
   'boost': {
    'value': '1600 MHz',
    'source': ['lockwood-pvc', 'geektopia-pvc'],
    'status': 'secondary',
   },
  },
  'matrix': {
   'tf32': {
    'value': '419 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '128 x 2048 FLOP/clk x 1.6 GHz',
   },
   'fp16': {
    'value': '839 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '128 x 4096 x 1.6 GHz',
   },
   'bf16': {
    'value': '832 TFLOP/s',
    'source': ['tacc-pvc', 'torchtitan-peak'],
    'status': 'secondary',
    'note': 'torchtitan: 340.8 per stack at 1.3 GHz',
   },
   'int8': {
    'value': '1678 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '128 x 8192 x 1.6 GHz',
   },
  },
  'vector': {
   'fp64': {'value': '52 TFLOP/s', 'source': ['tacc-pvc'], 'status': 'secondary'},
   'fp32': {
    'value': '52.4 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '128 x 128 FMA x 2 x 1.6 GHz',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 2048, 'fp16': 4096, 'bf16': 4096, 'int8': 8192},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per Xe-core, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 256, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
   'note': '128 multiply-adds per clock per Xe-core',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM2e',
   'capacity': {'value': '128 GB', 'source': ['lockwood-pvc', 'tacc-pvc'], 'status': 'secondary'},
   'bandwidth': {'value': '3.2768 TB/s', 'source': ['lockwood-pvc'], 'status': 'secondary'},
  },
  'l2': {
   'capacity': {
    'value': '408 MiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': '2 x 204; XLA lists 192 MB for the Max 1100',
   },
   'partitions': {'value': 2, 'source': ['memory'], 'status': 'unverified', 'note': 'one per stack'},
   'shared_by_all': False,
  },
  'shared': {
   'label': 'SLM and L1',
   'capacity_per_unit': {'value': '512 KiB', 'source': ['memory'], 'status': 'unverified'},
   'max_per_block': {'value': '128 KiB', 'source': ['xla-specs'], 'status': 'config', 'note': 'Max 1100'},
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Xe Link',
   'bandwidth_per_direction': {
    'value': '424 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '16 links x 26.5',
   },
  },
 },
 'tdp': {'value': '600 W', 'source': ['lockwood-pvc', 'geektopia-pvc'], 'status': 'secondary'},
 'measured': {
  'matrix': {
   'tf32': {
    'value': '220 TFLOP/s',
    'source': ['lockwood-pvc'],
    'status': 'derived',
    'note': 'twice one stack, pre-production Aurora, per stack',
   },
   'fp16': {
    'value': '526 TFLOP/s',
    'source': ['lockwood-pvc'],
    'status': 'derived',
    'note': 'twice one stack, pre-production Aurora, per stack',
   },
   'bf16': {
    'value': '546 TFLOP/s',
    'source': ['lockwood-pvc'],
    'status': 'derived',
    'note': 'twice one stack, pre-production Aurora, per stack',
   },
   'int8': {
    'value': '1154 TOP/s',
    'source': ['lockwood-pvc'],
    'status': 'derived',
    'note': 'twice one stack, pre-production Aurora, per stack',
   },
  },
 },
 'notes': ['Two stacks appear as two devices by default; per-stack numbers are half.'],
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'geektopia-pvc': 'Max 1550: 128 Xe cores, 1.6 GHz, 128 GB, 3.3 TB/s, 600 W. https://geektopia.es/es/technology/2023/04/11/noticias/intel-no-lanzara-la-max-1350-para-centros-de-datos-y-se-centrara-en-una-nueva-max-1450.html',
  'lockwood-pvc': 'Glenn Lockwood: Intel Max 1550 structure, clocks, HBM bandwidth, measured Aurora GEMM rates. https://glennklockwood.com/garden/processors/pvc',
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'tacc-pvc': 'TACC Stampede3 user guide: Max 1550 52 FP64 and 832 BF16 TFLOP/s',
  'torchtitan-peak': 'torchtitan utils: Max 1550 512 operations/clk/EU at 1300 MHz, MI250X 191.5 per GCD',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
