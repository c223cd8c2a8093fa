"""Compiled from hardware_specs/tpu-v6e.yaml by `python -m perfmodel.compiled`."""

HASH = "f64e40713e0737bd"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'tpu-v6e',
 'name': 'Google TPU v6e (Trillium)',
 'aliases': ['google-tpu-v6e', 'trillium'],
 'vendor': 'Google',
 'kind': 'accelerator',
 'architecture': 'TPU v6e (Trillium)',
 'launch_year': {'value': 2024, 'source': ['memory'], 'status': 'unverified'},
 'compute': {
  'units': {'value': 1, 'source': ['jax-tpuinfo'], 'status': 'spec'},
  'unit_name': 'TensorCore',
  'clocks': {
   'boost': {
    'value': '1750 MHz',
    'source': ['formula', 'memory'],
    'status': 'unverified',
    'note': '918 TFLOP/s needs 1750 MHz if a core has the equal of four 256 x 256 arrays; Google states neither',
   },
  },
  'matrix': {
   'bf16': {
    'value': '918 TFLOP/s',
    'source': ['ml-engineering', 'llm-calc', 'jax-tpuinfo'],
    'status': 'spec',
   },
   'fp8': {'value': '918 TFLOP/s', 'source': ['ml-engineering', 'jax-tpuinfo'], 'status': 'spec'},
   'int8': {'value': '1836 TOP/s', 'source': ['ml-engineering', 'jax-tpuinfo'], 'status': 'spec'},
   'int4': {'value': '3680 TOP/s', 'source': ['jax-tpuinfo'], 'status': 'spec'},
  },
  'matrix_flop_per_clock_per_unit': {
   'values': {'bf16': 524288, 'fp8': 524288, 'int8': 1048576, 'int4': 2097152},
   'source': ['formula'],
   'status': 'unverified',
   'note': '4 matrix units of 256 x 256 per TensorCore',
  },
 },
 'memory': {
  'hbm': {
   'technology': 'HBM',
   'capacity': {'value': '32 GB', 'source': ['jax-tpuinfo', 'llm-calc'], 'status': 'spec'},
   'bandwidth': {
    'value': '1.64 TB/s',
    'source': ['jax-tpuinfo', 'scaling-tpus'],
    'status': 'spec',
    'note': 'Google prints 1,640 GBps; llm-calc converts to 1759, treat as wrong',
   },
  },
  'shared': {
   'label': 'VMEM',
   'capacity_per_unit': {'value': '128 MiB', 'source': ['jax-tpuinfo'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '20617 B/clk',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': 'about 22 x the HBM bandwidth (stated for v5e)',
   },
  },
 },
 'links': {
  'host': {
   'name': 'PCIe',
   'bandwidth_per_direction': {'value': '32 GB/s', 'source': ['scaling-tpus'], 'status': 'secondary'},
  },
  'scale_up': {
   'name': 'ICI',
   'bandwidth_per_direction': {
    'value': '360 GB/s',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': '4 links x 90 GB/s',
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
