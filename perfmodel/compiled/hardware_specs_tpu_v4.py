"""Compiled from hardware_specs/tpu-v4.yaml by `python -m perfmodel.compiled`."""

HASH = "1f2e631cd0d3c2f8"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'tpu-v4',
 'name': 'Google TPU v4',
 'aliases': ['google-tpu-v4'],
 'vendor': 'Google',
 'kind': 'accelerator',
 'architecture': 'TPU v4',
 'launch_year': {'value': 2021, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 2, 'source': ['jax-tpuinfo'], 'status': 'spec'},
  'unit_name': 'TensorCore',
  'clocks': {
   'boost': {
    'value': '1050 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': 'bf16 peak over 2 x 4 arrays of 128 x 128 multiply-adds',
   },
  },
  'matrix': {
   'bf16': {
    'value': '275 TFLOP/s',
    'source': ['jax-tpuinfo', 'scaling-tpus', 'ml-engineering'],
    'status': 'spec',
   },
   'int8': {
    'value': '275 TOP/s',
    'source': ['scaling-tpus', 'ml-engineering'],
    'status': 'secondary',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 131072, 'int8': 131072},
   'source': ['formula'],
   'status': 'derived',
   'note': '4 matrix units of 128 x 128 per TensorCore',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM',
   'capacity': {'value': '32 GB', 'source': ['jax-tpuinfo', 'ml-engineering'], 'status': 'spec'},
   'bandwidth': {
    'value': '1.228 TB/s',
    'source': ['jax-tpuinfo', 'scaling-tpus', 'ml-engineering'],
    'status': 'spec',
    'note': '1.2 TB/s',
   },
  },
  'l2': {
   'label': 'CMEM',
   'capacity': {'value': '128 MiB', 'source': ['jax-tpuinfo'], 'status': 'spec'},
  },
  'shared': {
   'label': 'VMEM',
   'capacity_per_unit': {'value': '16 MiB', 'source': ['jax-tpuinfo'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '12865 B/clk',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': 'about 22 x the HBM bandwidth (stated for v5e)',
   },
  },
 },
 'links': {
  'host': {
   'name': 'PCIe',
   'bandwidth_per_direction': {'value': '15 GB/s', 'source': ['scaling-tpus'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'ICI',
   'bandwidth_per_direction': {
    'value': '270 GB/s',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': '6 links x 45 GB/s',
   },
  },
 },
 'tdp': {
  'value': '192 W',
  'source': ['memory'],
  'status': 'unverified',
  'note': 'mean/typical from the v4 paper',
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'jax-tpuinfo': 'JAX Pallas TpuInfo: per-core VMEM, CMEM, SMEM, HBM, bf16/int8/fp8/int4 op rates. https://github.com/jax-ml/jax/blob/04c63627260d095cbc1cf03fb819c520d7c659f6/jax/_src/pallas/mosaic/tpu_info.py',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'scaling-tpus': 'How to Scale Your Model, TPUs chapter: HBM, FLOPs, ICI per link, VMEM/HBM ratio 22x. https://github.com/jax-ml/scaling-book/blob/0819a7d8c55ddc113f5cba0285a5f97380cac1e3/tpus.md',
 },
}
