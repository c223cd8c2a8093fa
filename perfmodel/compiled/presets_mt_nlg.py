"""Compiled from presets/mt-nlg.yaml by `python -m perfmodel.compiled`."""

HASH = "45bad76e785c6104"
DOCUMENT = {
 'networks': {
  'mt-nlg-530b': {
   'source': 'Smith et al. (2201.11990) section 3.1; vocabulary of GPT-2 padded to 51,200',
   'family': 'megatron',
   'sizes': {'parameters': 530000000000},
   'hidden': 20480,
   'vocabulary': 51200,
   'norm': 'layernorm',
   'norm_bias': True,
   'positions': 2048,
   'tied': True,
   'dropout': 0.1,
   'blocks': [
    {
     'repeat': 105,
     'attention': {
      'heads': 128,
      'kv_heads': 128,
      'head_size': 160,
      'qkv_bias': True,
      'output_bias': True,
      'rotary': False,
      'joined': True,
     },
     'mlp': {'inner': 81920, 'gated': False, 'activation': 'gelu_new', 'bias': True},
    },
   ],
  },
 },
}
