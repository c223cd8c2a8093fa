"""Compiled from offload/flexgen.yaml by `python -m perfmodel.compiled`."""

HASH = "c8b768242dc9d5d2"
DOCUMENT = {
 'version': 1,
 'machines': {
  't4-gcp': {
   'device': 't4',
   'source': 'FlexLLMGen cost_model.py, CostModelConfig: fitted by gradient descent to runs on a T4 with 208 GB of DRAM and 1.5 TB of SSD',
   'to_device': 13840532111.36,
   'cache_to_host': 1041529569.28,
   'activations_to_host': 5175435591.68,
   'from_disk': 507879882.752,
   'from_disk_weights_share': 0.95,
   'cache_to_disk': 801011400.704,
   'activations_to_disk': 2163589775.36,
   'decode_to_disk': 2163589775.36,
   'prefill_products': 21240000000000.0,
   'prefill_attention': 9970000000000.0,
   'decode_products': 4300000000000.0,
   'decode_attention': 79000000000.0,
   'host_attention': 12300000000.0,
   'small': {'least': 0.1, 'both': 0.0168, 'part': 0.0328, 'width': 0.0621},
  },
 },
}
