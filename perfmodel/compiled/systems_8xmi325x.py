"""Compiled from systems/8xmi325x.yaml by `python -m perfmodel.compiled`."""

HASH = "8dcc9afbee7ebbb8"
DOCUMENT = {
 'schema_version': 1,
 'slug': '8xmi325x',
 'name': '8 x AMD Instinct MI325X',
 'device': 'mi325x',
 'levels': [
  {
   'name': 'xgmi',
   'label': 'Infinity Fabric, every pair joined',
   'medium': 'fabric',
   'devices': {'value': 8, 'source': ['ml-engineering-network'], 'status': 'secondary'},
   'topology': 'mesh',
   'bandwidth_per_direction': {
    'value': '448 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': '7 links x 64, one to each other device',
   },
   'latency': {'value': '0.6 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
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
 },
}
