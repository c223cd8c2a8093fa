"""Compiled from systems/tpu-v5p-pod.yaml by `python -m perfmodel.compiled`."""

HASH = "2d7803098143ebd8"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'tpu-v5p-pod',
 'name': 'TPU v5p pod slice',
 'aliases': ['tpu-v5p-slice'],
 'device': 'tpu-v5p',
 'levels': [
  {
   'name': 'ici',
   'label': 'ICI, three-dimensional torus',
   'medium': 'fabric',
   'devices': {'value': 8960, 'source': ['scaling-tpus'], 'status': 'secondary'},
   'topology': 'ring',
   'bandwidth_per_direction': {
    'value': '540 GB/s',
    'source': ['scaling-tpus'],
    'status': 'derived',
    'note': '6 links x 90 GB/s',
   },
   'latency': {'value': '0.6 us', 'source': ['nccl-tuning'], 'status': 'secondary'},
  },
 ],
 'host': {
  'link': {
   'name': 'PCIe',
   'bandwidth_per_direction': {'value': '15 GB/s', 'source': ['scaling-tpus'], 'status': 'secondary'},
  },
 },
 'notes': [
  'A torus is taken as one ring over all of its links; the latency of a hop is that of NVLink, for want of a figure.',
 ],
 'sources': {
  'nccl-tuning': 'NCCL 2.2x, src/graph/tuning.cc: latency of one hop of the LL protocol over NVLink, PCIe and network. https://github.com/NVIDIA/nccl',
  'scaling-tpus': 'How to Scale Your Model, TPUs chapter: HBM, FLOPs, ICI per link, VMEM/HBM ratio 22x. https://github.com/jax-ml/scaling-book/blob/0819a7d8c55ddc113f5cba0285a5f97380cac1e3/tpus.md',
 },
}
