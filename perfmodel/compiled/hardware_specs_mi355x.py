"""Compiled from hardware_specs/mi355x.yaml by `python -m perfmodel.compiled`."""

HASH = "48509eec54538bee"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'mi355x',
 'name': 'AMD Instinct MI355X 288GB',
 'aliases': ['amd-mi355x', 'amd-instinct-mi355x'],
 'vendor': 'AMD',
 'kind': 'gpu',
 'architecture': 'CDNA4',
 'launch_year': {'value': 2025, 'source': ['llm-calc'], 'status': 'secondary'},
 'target': 'gfx950',
 'compute': {
  'units': {'value': 256, 'source': ['rocm-gpuspecs'], 'status': 'spec'},
  'unit_name': 'CU',
  'warp_size': {'value': 64, 'source': ['rocm-archspecs'], 'status': 'spec'},
  'clocks': {'boost': {'value': '2400 MHz', 'source': ['ml-engineering'], 'status': 'secondary'}},
  'matrix': {
   'fp64': {'value': '78.6 TFLOP/s', 'source': ['memory'], 'status': 'unverified'},
   'fp32': {'value': '157.3 TFLOP/s', 'source': ['memory'], 'status': 'unverified'},
   'fp16': {
    'value': '2517 TFLOP/s',
    'source': ['llm-calc', 'ml-engineering'],
    'status': 'via',
    'note': 'AMD quotes dense; sparse FP16 5.0 PF',
   },
   'bf16': {'value': '2517 TFLOP/s', 'source': ['llm-calc', 'ml-engineering'], 'status': 'via'},
   'fp8': {
    'value': '5033 TFLOP/s',
    'source': ['llm-calc', 'mi355x-isscc', 'ml-engineering'],
    'status': 'via',
    'note': 'a quoted 10.1 PF FP8 is sparse',
   },
   'fp6': {
    'value': '10070 TFLOP/s',
    'source': ['llm-calc', 'ml-engineering'],
    'status': 'via',
    'note': 'FP6 runs at FP4 rate',
   },
   'fp4': {'value': '10070 TFLOP/s', 'source': ['llm-calc', 'ml-engineering'], 'status': 'via'},
   'int8': {'value': '5033 TOP/s', 'source': ['llm-calc'], 'status': 'via'},
  },
  'vector': {
   'fp64': {'value': '78.6 TFLOP/s', 'source': ['llm-calc'], 'status': 'secondary'},
   'fp32': {'value': '157.3 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {
    'fp64': 128,
    'fp32': 256,
    'fp16': 4096,
    'bf16': 4096,
    'fp8': 8192,
    'fp6': 16384,
    'fp4': 16384,
    'int8': 8192,
   },
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per CU, a multiply-add counts two',
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 128, 'fp32': 256},
   'source': ['formula'],
   'status': 'derived',
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
   'capacity': {'value': '288 GB', 'source': ['rocm-gpuspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '8 TB/s',
    'source': ['ml-engineering', 'llm-calc'],
    'status': 'via',
    'note': 'XLA mi350: 7782',
   },
  },
  'llc': {
   'label': 'Infinity Cache',
   'capacity': {'value': '256 MiB', 'source': ['rocm-gpuspecs', 'xla-specs'], 'status': 'spec'},
   'shared_by_all': True,
  },
  'l2': {
   'capacity': {'value': '32 MiB', 'source': ['rocm-gpuspecs'], 'status': 'spec'},
   'bandwidth': {
    'value': '39.3 TB/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '8 XCD x 16 channels x 128 B/clk x 2400 MHz, the channels of CDNA 3',
   },
   'partitions': {
    'value': 8,
    'source': ['rocm-gpuspecs'],
    'status': 'spec',
    'note': '4 MiB private to each XCD',
   },
   'shared_by_all': False,
  },
  'shared': {
   'label': 'LDS',
   'capacity_per_unit': {'value': '160 KiB', 'source': ['rocm-gpuspecs'], 'status': 'spec'},
   'max_per_block': {'value': '160 KiB', 'source': ['xla-specs'], 'status': 'config'},
   'bandwidth_per_unit': {
    'value': '256 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'CDNA4 doubles LDS read bandwidth',
   },
   'l1_capacity_per_unit': {'value': '32 KiB', 'source': ['rocm-gpuspecs'], 'status': 'spec'},
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2048,
  'max_warps_per_unit': 32,
  'max_threads_per_block': 1024,
  'registers_per_unit': 131072,
  'max_registers_per_thread': 512,
  'source': ['rocm-gpuspecs', 'memory'],
  'status': 'unverified',
  'note': 'registers from the ROCm documentation, wave limits from memory; max_registers_per_thread counts vector registers per lane',
 },
 'links': {
  'host': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'Infinity Fabric (xGMI)',
   'bandwidth_per_direction': {
    'value': '535.5 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '7 links x 76.5; 76.5 to one peer',
   },
  },
 },
 'tdp': {'value': '1400 W', 'source': ['ml-engineering', 'llm-calc'], 'status': 'via'},
 'measured': {
  'matrix': {
   'bf16': {
    'value': '1565 TFLOP/s',
    'source': ['ml-engineering'],
    'status': 'measured',
    'note': '68% of the 2300 the author used; 62% of 2517; best shape found (MAMF)',
   },
  },
 },
 'notes': [
  '256 CUs (32 per XCD): tables saying 320 CUs are wrong. TF32 matrix mode was dropped in CDNA4 (unverified).',
 ],
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'mi355x-isscc': 'ISSCC 2026 report: MI355X 32 active CUs/XCD, FP8 8192 FLOP/clk/CU. https://www.world-today-news.com/?p=7253162',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'rocm-archspecs': 'ROCm hardware specs table: CUs, wavefront, LDS, L3/L2/L1, VGPR. https://github.com/ROCm/ROCm/blob/e396b4898f459db094bfd60b876f419f77eb9f09/docs/reference/gpu-arch-specs.rst',
  'rocm-gpuspecs': 'ROCm 7.13 GPU specs table: MI355X/MI350X rows. https://rocm.docs.amd.com/en/7.13.0-preview/reference/gpu-specs.html',
  'xla-specs': 'OpenXLA GPU target configurations (*.txtpb). https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs',
 },
}
