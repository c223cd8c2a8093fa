"""Compiled from hardware_specs/groq-lpu.yaml by `python -m perfmodel.compiled`."""

HASH = "8a4e4ed565ba6e35"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'groq-lpu',
 'name': 'Groq LPU (GroqChip 1)',
 'aliases': ['groq-lpu-gen1', 'lpu'],
 'vendor': 'Groq',
 'kind': 'accelerator',
 'architecture': 'Tensor Streaming Processor',
 'launch_year': {'value': 2020, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {
   'value': 1,
   'source': ['formula'],
   'status': 'derived',
   'note': 'the whole chip is one deterministic pipeline',
  },
  'unit_name': 'chip',
  'clocks': {'boost': {'value': '900 MHz', 'source': ['groq-sec'], 'status': 'secondary'}},
  'matrix': {
   'fp16': {'value': '188 TFLOP/s', 'source': ['groq-sec'], 'status': 'secondary'},
   'int8': {'value': '750 TOP/s', 'source': ['groq-sec'], 'status': 'secondary'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'on-chip SRAM',
   'capacity': {'value': '0.23 GB', 'source': ['groq-sec'], 'status': 'secondary'},
   'bandwidth': {'value': '80 TB/s', 'source': ['groq-sec'], 'status': 'secondary'},
  },
 },
 'links': {
  'scale_up': {
   'name': 'RealScale C2C',
   'bandwidth_per_direction': {
    'value': '165 GB/s',
    'source': ['groq-sec'],
    'status': 'derived',
    'note': '330 GB/s aggregate bidirectional per card',
   },
  },
 },
 'tdp': {'value': '215 W', 'source': ['memory'], 'status': 'unverified'},
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'groq-sec': 'Groq LPU gen 1: 230 MB SRAM, 80 TB/s, 750 TOPS INT8, 188 TFLOPS FP16, 900 MHz, ~330 GB/s links',
  'memory': 'unverified: from memory',
 },
}
