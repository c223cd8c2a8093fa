"""Compiled from hardware_specs/tpu-v3.yaml by `python -m perfmodel.compiled`."""

HASH = "6f703391578bdcd2"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'tpu-v3',
 'name': 'Google TPU v3',
 'aliases': ['google-tpu-v3'],
 'vendor': 'Google',
 'kind': 'accelerator',
 'architecture': 'TPU v3',
 'launch_year': {'value': 2018, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 2, 'source': ['jax-tpuinfo'], 'status': 'spec'},
  'unit_name': 'TensorCore',
  'clocks': {
   'boost': {
    'value': '940 MHz',
    'source': ['formula'],
    'status': 'derived',
    'note': 'bf16 peak over 2 x 2 arrays of 128 x 128 multiply-adds',
   },
  },
  'matrix': {
   'bf16': {
    'value': '123 TFLOP/s',
    'source': ['aimw-repo', 'memory'],
    'status': 'secondary',
    'note': 'Cloud documentation 123; JAX and the scaling book print 140',
   },
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 65536},
   'source': ['formula'],
   'status': 'derived',
   'note': '2 matrix units of 128 x 128 per TensorCore',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM',
   'capacity': {'value': '32 GB', 'source': ['jax-tpuinfo', 'scaling-tpus'], 'status': 'spec'},
   'bandwidth': {
    'value': '900 GB/s',
    'source': ['scaling-tpus'],
    'status': 'secondary',
    'note': 'JAX 825',
   },
  },
  'shared': {
   'label': 'VMEM',
   'capacity_per_unit': {'value': '16 MiB', 'source': ['jax-tpuinfo'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '10532 B/clk',
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
    'value': '400 GB/s',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': '4 links x 100 GB/s, 2D torus; the number of links from memory',
   },
  },
 },
 'sources': {
  'aimw-repo': 'AI and Memory Wall repository, points of the hardware figure. https://github.com/amirgholami/ai_and_memory_wall/tree/a1f1d676a6e54413b57a7f89374b0dddeab5f356',
  'formula': 'Computed from other facts of the same file; the note says how',
  'jax-tpuinfo': 'JAX Pallas TpuInfo: per-core VMEM, CMEM, SMEM, HBM, bf16/int8/fp8/int4 op rates. https://github.com/jax-ml/jax/blob/04c63627260d095cbc1cf03fb819c520d7c659f6/jax/_src/pallas/mosaic/tpu_info.py',
  'memory': 'unverified: from memory',
  'scaling-tpus': 'How to Scale Your Model, TPUs chapter: HBM, FLOPs, ICI per link, VMEM/HBM ratio 22x. https://github.com/jax-ml/scaling-book/blob/0819a7d8c55ddc113f5cba0285a5f97380cac1e3/tpus.md',
 },
}
