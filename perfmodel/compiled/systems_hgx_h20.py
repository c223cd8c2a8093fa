"""Compiled from systems/hgx-h20.yaml by `python -m perfmodel.compiled`."""

HASH = "e76270d0f4d58cf4"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'hgx-h20',
 'name': '8 x NVIDIA H20 SXM',
 'aliases': ['8xh20'],
 'device': 'h20',
 'levels': [
  {
   'name': 'nvlink',
   'label': 'NVLink 4 through NVSwitch',
   'medium': 'fabric',
   'devices': {'value': 8, 'source': ['ml-engineering-network'], 'status': 'secondary'},
   'topology': 'switch',
   'bandwidth_per_direction': {
    'value': '450 GB/s',
    'source': ['ml-engineering-network', 'scaling-gpus'],
    'status': 'secondary',
    'note': '18 links x 25; 900 GB/s bidirectional',
   },
   'latency': {'value': '0.6 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
   'reduces_in_switch': {'value': True, 'source': ['nvls'], 'status': 'secondary'},
  },
  {
   'name': 'network',
   'label': '400 Gb/s adapter',
   'medium': 'network',
   'devices': {'value': 65536, 'source': ['memory'], 'status': 'unverified'},
   'topology': 'switch',
   'bandwidth_per_direction': {
    'value': '50 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'one adapter a device',
   },
   'latency': {'value': '2.7 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
   'oversubscription': {
    'value': 1.0,
    'source': ['memory'],
    'status': 'unverified',
    'note': 'a fat tree without oversubscription',
   },
  },
 ],
 'host': {
  'link': {
   'name': 'PCIe 5 x16',
   'bandwidth_per_direction': {'value': '63.0 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'sources': {
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nccl-tuning': 'NCCL 2.2x, src/graph/tuning.cc: latency of one hop of the LL protocol over NVLink, PCIe and network. https://github.com/NVIDIA/nccl',
  'nvls': 'NCCL 2.2x, src/graph/tuning.cc: NVLS (NVLink SHARP) is enabled from Hopper on, where all devices hang on switches. https://github.com/NVIDIA/nccl',
  'scaling-gpus': 'How to Scale Your Model, GPUs chapter. https://github.com/jax-ml/scaling-book/blob/1a55377affc9ee8f10b549f689ad57e813623a7e/gpus.md',
 },
}
