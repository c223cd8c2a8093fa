"""Compiled from presets/mixtral.yaml by `python -m perfmodel.compiled`."""

HASH = "7584c8f0f56ac3c8"
DOCUMENT = {
 'networks': {
  'mixtral-8x7b': {
   'aliases': ['mixtral-8x7b-v0.1'],
   'source': 'Mixtral (2401.04088) table 1; config.json of Mixtral-8x7B-v0.1',
   'family': 'mixtral',
   'sizes': {'parameters': 46702792704, 'active': 12879925248},
   'hidden': 4096,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 14336, 'experts': 8, 'chosen': 2},
    },
   ],
  },
  'mixtral-8x22b': {
   'aliases': ['mixtral-8x22b-v0.1'],
   'source': 'config.json of Mixtral-8x22B-v0.1; active parameters of its announcement',
   'family': 'mixtral',
   'sizes': {'parameters': 140620634112, 'active': 39000000000},
   'hidden': 6144,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 56,
     'attention': {'heads': 48, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 16384, 'experts': 8, 'chosen': 2},
    },
   ],
  },
 },
}
