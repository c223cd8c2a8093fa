"""Compiled from hardware_specs/tpu-v5p.yaml by `python -m perfmodel.compiled`."""

HASH = "48250dc67c9df8cb"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'tpu-v5p',
 'name': 'Google TPU v5p',
 'aliases': ['google-tpu-v5p'],
 'vendor': 'Google',
 'kind': 'accelerator',
 'architecture': 'TPU v5p',
 'launch_year': {'value': 2023, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 2, 'source': ['jax-tpuinfo'], 'status': 'spec'},
  'unit_name': 'TensorCore',
  'clocks': {
   'boost': {
    'value': '1750 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': 'bf16 peak over 2 x 4 arrays of 128 x 128 multiply-adds',
   },
  },
  'matrix': {
   'bf16': {
    'value': '459 TFLOP/s',
    'source': ['jax-tpuinfo', 'scaling-tpus', 'ml-engineering', 'llm-calc'],
    'status': 'spec',
   },
   'fp8': {
    'value': '459 TFLOP/s',
    'source': ['llm-calc'],
    'status': 'secondary',
    'note': 'runs at BF16 rate',
   },
   'int8': {'value': '918 TOP/s', 'source': ['jax-tpuinfo', 'ml-engineering'], 'status': 'spec'},
   'int4': {'value': '1840 TOP/s', 'source': ['jax-tpuinfo'], 'status': 'spec'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 131072, 'fp8': 131072, 'int8': 262144, 'int4': 524288},
   'source': ['formula'],
   'status': 'derived',
   'note': '4 matrix units of 128 x 128 per TensorCore',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM',
   'capacity': {
    'value': '95 GB',
    'source': ['ml-engineering', 'llm-calc'],
    'status': 'secondary',
    'note': 'JAX 103e9 B = 96 GiB',
   },
   'bandwidth': {
    'value': '2.765 TB/s',
    'source': ['ml-engineering', 'llm-calc'],
    'status': 'secondary',
    'note': 'JAX 2460; scaling book 2800',
   },
  },
  'shared': {
   'label': 'VMEM',
   'capacity_per_unit': {
    'value': '64 MiB',
    'source': ['jax-tpuinfo'],
    'status': 'spec',
    'note': '64 MiB per core',
   },
   'bandwidth_per_unit': {
    'value': '17380 B/clk',
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
    'value': '540 GB/s',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': '6 links x 90 GB/s',
   },
  },
 },
 'sources': {
  'formula': 'Computed from other facts of the same file; the note says how',
  'jax-tpuinfo': 'JAX Pallas TpuInfo: per-core VMEM, CMEM, SMEM, HBM, bf16/int8/fp8/int4 op rates. https://github.com/jax-ml/jax/blob/04c63627260d095cbc1cf03fb819c520d7c659f6/jax/_src/pallas/mosaic/tpu_info.py',
  'llm-calc': 'llm-calc accelerator table, with a citation per entry',
  'memory': 'unverified: from memory',
  'ml-engineering': 'ml-engineering, accelerator chapter (2026-08). https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/README.md',
  'scaling-tpus': 'How to Scale Your Model, TPUs chapter: HBM, FLOPs, ICI per link, VMEM/HBM ratio 22x. https://github.com/jax-ml/scaling-book/blob/0819a7d8c55ddc113f5cba0285a5f97380cac1e3/tpus.md',
 },
}
