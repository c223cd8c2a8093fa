"""Compiled from systems/dgx-1-v100.yaml by `python -m perfmodel.compiled`."""

HASH = "c482655b6434a6c3"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'dgx-1-v100',
 'name': 'NVIDIA DGX-1 with V100',
 'aliases': ['dgx-1'],
 'device': 'v100-sxm2',
 'levels': [
  {
   'name': 'nvlink',
   'label': 'NVLink 2, hybrid cube mesh',
   'medium': 'fabric',
   'devices': {'value': 8, 'source': ['memory'], 'status': 'unverified'},
   'topology': 'ring',
   'bandwidth_per_direction': {
    'value': '150 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '6 links x 25; 300 GB/s bidirectional',
   },
   'latency': {'value': '0.6 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
  },
  {
   'name': 'network',
   'label': '100 Gb/s adapter',
   'medium': 'network',
   'devices': {'value': 65536, 'source': ['memory'], 'status': 'unverified'},
   'topology': 'switch',
   'bandwidth_per_direction': {
    'value': '6.25 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': '4 adapters of 8 devices',
   },
   'latency': {'value': '2.7 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
   'oversubscription': {'value': 1.0, 'source': ['memory'], 'status': 'unverified'},
  },
 ],
 'host': {
  'link': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'notes': [
  'Of a hybrid cube mesh the rings that pass all eight devices are what is taken: a ring.',
 ],
 'sources': {
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nccl-tuning': 'NCCL 2.2x, src/graph/tuning.cc: latency of one hop of the LL protocol over NVLink, PCIe and network. https://github.com/NVIDIA/nccl',
 },
}
