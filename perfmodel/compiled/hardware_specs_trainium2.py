"""Compiled from hardware_specs/trainium2.yaml by `python -m perfmodel.compiled`."""

HASH = "5d34dc3b1ff6ed6d"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'trainium2',
 'name': 'AWS Trainium2',
 'aliases': ['aws-trainium2', 'trn2'],
 'vendor': 'AWS',
 'kind': 'accelerator',
 'architecture': 'NeuronCore-v3 x 8',
 'launch_year': {'value': 2024, 'source': ['llm-calc'], 'status': 'secondary'},
 'compute': {
  'units': {'value': 8, 'source': ['ml-engineering'], 'status': 'secondary', 'note': 'NeuronCores'},
  'unit_name': 'NeuronCore',
  'clocks': {
   'boost': {
    'value': '2545 MHz',
    'source': ['formula', 'memory'],
    'status': 'unverified',
    'note': '667 TFLOP/s over 8 arrays of 128 x 128 multiply-adds; nominal, AWS states another clock',
   },
  },
  'matrix': {
   'fp32': {'value': '181 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'tf32': {'value': '667 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'fp16': {'value': '667 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'bf16': {'value': '667 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
   'fp8': {'value': '1299 TFLOP/s', 'source': ['ml-engineering'], 'status': 'secondary'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'tf32': 32768, 'fp16': 32768, 'bf16': 32768, 'fp8': 65536},
   'source': ['formula'],
   'status': 'unverified',
   'note': 'one 128 x 128 array per core',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM3',
   'capacity': {'value': '96 GB', 'source': ['ml-engineering'], 'status': 'secondary'},
   'bandwidth': {'value': '2.9 TB/s', 'source': ['ml-engineering'], 'status': 'secondary'},
  },
 },
 'links': {
  'scale_up': {
   'name': 'NeuronLink-v3',
   'bandwidth_per_direction': {'value': '640 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'notes': ['AWS prints one fp32 figure; it is taken as the matrix rate. No vector rate is known.'],
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
 },
}
