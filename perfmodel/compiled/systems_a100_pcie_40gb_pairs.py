"""Compiled from systems/a100-pcie-40gb-pairs.yaml by `python -m perfmodel.compiled`."""

HASH = "c4084153c7f117b9"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'a100-pcie-40gb-pairs',
 'name': '8 x NVIDIA A100 PCIe (40 GB), NVLink bridges',
 'device': 'a100-pcie-40gb',
 'levels': [
  {
   'name': 'nvlink',
   'label': 'NVLink 3 bridge',
   'medium': 'fabric',
   'devices': {'value': 2, 'source': ['memory'], 'status': 'unverified'},
   'topology': 'pairs',
   'bandwidth_per_direction': {
    'value': '300 GB/s',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'a bridge joins two cards',
   },
   'latency': {'value': '0.6 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
  },
  {
   'name': 'pcie',
   'label': "PCIe 4 x16 over the host's bridges",
   'medium': 'pcie',
   'devices': {'value': 8, 'source': ['memory'], 'status': 'unverified'},
   'topology': 'host-bridge',
   'bandwidth_per_direction': {
    'value': '31.0 GB/s',
    'source': ['ml-engineering-network'],
    'status': 'secondary',
    'note': 'the lanes of one device',
   },
   'latency': {'value': '1 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
  },
 ],
 'host': {
  'link': {
   'name': 'PCIe 4 x16',
   'bandwidth_per_direction': {'value': '31.0 GB/s', 'source': ['ml-engineering-network'], 'status': 'secondary'},
  },
 },
 'sources': {
  'memory': 'unverified: from memory',
  'ml-engineering-network': 'ml-engineering, network chapter: PCIe, NVLink, xGMI, C2C unidirectional rates, NIC tables, NCCL busbw measurements. https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/network/README.md',
  'nccl-tuning': 'NCCL 2.2x, src/graph/tuning.cc: latency of one hop of the LL protocol over NVLink, PCIe and network. https://github.com/NVIDIA/nccl',
 },
}
