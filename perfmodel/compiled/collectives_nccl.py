"""Compiled from collectives/nccl.yaml by `python -m perfmodel.compiled`."""

HASH = "93dceb6245a62fca"
DOCUMENT = {
 'version': 1,
 'base_us': {'LL': 6.6, 'LL128': 14.0, 'Simple': 8.4},
 'tree_base_us': {'LL': 6.8, 'LL128': 14.0, 'Simple': 8.4},
 'hop_us': {
  'fabric': {'LL': 0.6, 'LL128': 1.9, 'Simple': 3.4},
  'pcie': {'LL': 1.0, 'LL128': 2.5, 'Simple': 5.7},
  'network': {'LL': 2.7, 'LL128': 4.0, 'Simple': 14.0},
 },
 'tree_hop_us': {
  'fabric': {'LL': 0.6, 'LL128': 1.25, 'Simple': 4.0},
  'pcie': {'LL': 1.0, 'LL128': 1.9, 'Simple': 4.0},
  'network': {'LL': 5.0, 'LL128': 8.5, 'Simple': 14.0},
 },
 'nvls_us': 25.0,
 'nvls_network_us': 14.0,
 'bandwidth_share': {'fabric': 0.8, 'pcie': 0.76, 'network': 1.0},
 'protocol_share': {'LL': 0.5, 'LL128': 0.92, 'Simple': 1.0},
 'tree_share': {'LL': 0.242, 'LL128': 0.7156, 'Simple': 0.92},
 'll_most': {
  'volta': 39.0,
  'turing': 39.0,
  'ampere-ga100': 87.7,
  'ampere': 87.7,
  'ada': 87.7,
  'hopper': 141.0,
  'blackwell': 282.0,
  'blackwell-gb20x': 282.0,
 },
 'll_most_network': {'two': 22.5, 'more': 19.0},
 'nvls_share': {'hopper': 0.85, 'blackwell': 0.74, 'blackwell-gb20x': 0.74},
 'nvls_types': ['fp16', 'bf16', 'fp32', 'fp64'],
}
