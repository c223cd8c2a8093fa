"""Compiled from presets/gpt-oss.yaml by `python -m perfmodel.compiled`."""

HASH = "a1cb58ede4103b8c"
DOCUMENT = {
 'networks': {
  'gpt-oss-20b': {
   'source': 'gpt-oss model card (2508.10925) table 1; config.json of gpt-oss-20b; active parameters without the embedding',
   'family': 'gpt_oss',
   'sizes': {'parameters': 20914757184, 'active': 3610000000},
   'hidden': 2880,
   'vocabulary': 201088,
   'blocks': [
    {
     'repeat': 12,
     'blocks': [
      {
       'attention': {
        'heads': 64,
        'kv_heads': 8,
        'head_size': 64,
        'window': 128,
        'qkv_bias': True,
        'output_bias': True,
        'sinks': True,
       },
       'mlp': {'inner': 2880, 'bias': True, 'experts': 32, 'chosen': 4, 'router_bias': True},
      },
      {
       'attention': {
        'heads': 64,
        'kv_heads': 8,
        'head_size': 64,
        'qkv_bias': True,
        'output_bias': True,
        'sinks': True,
       },
       'mlp': {'inner': 2880, 'bias': True, 'experts': 32, 'chosen': 4, 'router_bias': True},
      },
     ],
    },
   ],
  },
  'gpt-oss-120b': {
   'source': 'gpt-oss model card (2508.10925) table 1; config.json of gpt-oss-120b; active parameters without the embedding',
   'family': 'gpt_oss',
   'sizes': {'parameters': 116829156672, 'active': 5130000000},
   'hidden': 2880,
   'vocabulary': 201088,
   'blocks': [
    {
     'repeat': 18,
     'blocks': [
      {
       'attention': {
        'heads': 64,
        'kv_heads': 8,
        'head_size': 64,
        'window': 128,
        'qkv_bias': True,
        'output_bias': True,
        'sinks': True,
       },
       'mlp': {'inner': 2880, 'bias': True, 'experts': 128, 'chosen': 4, 'router_bias': True},
      },
      {
       'attention': {
        'heads': 64,
        'kv_heads': 8,
        'head_size': 64,
        'qkv_bias': True,
        'output_bias': True,
        'sinks': True,
       },
       'mlp': {'inner': 2880, 'bias': True, 'experts': 128, 'chosen': 4, 'router_bias': True},
      },
     ],
    },
   ],
  },
 },
}
