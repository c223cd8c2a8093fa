"""Compiled from collectives/spread.yaml by `python -m perfmodel.compiled`."""

HASH = "a19588e72dc576d4"
DOCUMENT = {
 'version': 1,
 'devices': ['a100-sxm4-80gb', 'h100-sxm'],
 'architectures': ['ampere-ga100', 'hopper'],
 'libraries': ['nccl', 'sglang', 'vllm'],
 'fitted': {
  'nvls Simple': [-0.173, 0.238],
  'one-shot direct': [-0.026, 0.141],
  'pairwise LL': [-0.168, 0.24],
  'pairwise Simple': [-0.221, 0.226],
  'ring LL': [-0.12, 0.154],
  'ring LL128': [-0.135, 0.15],
  'ring Simple': [-0.082, 0.075],
  'two-shot direct': [-0.1, 0.161],
 },
 'unseen': {
  'nvls Simple': [-0.216, 0.297],
  'one-shot direct': [-0.032, 0.176],
  'pairwise LL': [-0.183, 0.275],
  'pairwise Simple': [-0.244, 0.241],
  'ring LL': [-0.197, 0.202],
  'ring LL128': [-0.11, 0.246],
  'ring Simple': [-0.068, 0.142],
  'two-shot direct': [-0.124, 0.201],
 },
}
