"""Compiled from hardware_specs/wse-2.yaml by `python -m perfmodel.compiled`."""

HASH = "79e163bba111d15e"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'wse-2',
 'name': 'Cerebras WSE-2',
 'aliases': ['cerebras-wse-2', 'wse2'],
 'vendor': 'Cerebras',
 'kind': 'accelerator',
 'architecture': 'WSE-2',
 'launch_year': {'value': 2021, 'source': ['anandtech-wse2'], 'status': 'secondary'},
 'compute': {
  'units': {'value': 850000, 'source': ['anandtech-wse2'], 'status': 'secondary'},
  'unit_name': 'core',
  'clocks': {
   'boost': {
    'value': '1100 MHz',
    'source': ['formula', 'memory'],
    'status': 'unverified',
    'note': 'nominal: 7.5 PFLOP/s over 850000 cores of 8 FLOP per clock',
   },
  },
  'matrix': {
   'fp16': {
    'value': '7500 TFLOP/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'about 7.5 PF dense FP16 in third-party estimates; Cerebras publishes no dense figure',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'fp16': 8},
   'source': ['formula', 'memory'],
   'status': 'unverified',
   'note': 'four fp16 multiply-adds per clock',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'on-wafer SRAM',
   'capacity': {'value': '40 GB', 'source': ['anandtech-wse2'], 'status': 'secondary'},
   'bandwidth': {
    'value': '20 PB/s',
    'source': ['anandtech-wse2'],
    'status': 'secondary',
    'note': '20 PB/s aggregate, all local to cores',
   },
  },
 },
 'links': {
  'scale_up': {
   'name': 'on-wafer fabric',
   'bandwidth_per_direction': {
    'value': '27.5 PB/s',
    'source': ['anandtech-wse2'],
    'status': 'secondary',
    'note': '220 Pb/s',
   },
  },
 },
 'tdp': {
  'value': '23000 W',
  'source': ['memory'],
  'status': 'unverified',
  'note': 'CS-2 system; one article gives 15 kW for the wafer',
 },
 'notes': ['No off-chip DRAM on the device: weights stream from MemoryX over the network.'],
 'sources': {
  'anandtech-wse2': 'AnandTech WSE-2: 850k cores, 40 GB SRAM, 20 PB/s, fabric 220 Pb/s. https://subscriber.anandtech.com/Show/Index/16626',
  'formula': 'Computed from other facts of the same file; the note says how',
  'memory': 'unverified: from memory',
 },
}
