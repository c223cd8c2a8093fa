"""Compiled from presets/falcon.yaml by `python -m perfmodel.compiled`."""

HASH = "fbe3b5c87f793b08"
DOCUMENT = {
 'networks': {
  'falcon-7b': {
   'source': 'Falcon (2311.16867) table 1; config.json of tiiuae/falcon-7b',
   'family': 'falcon',
   'sizes': {'parameters': 6921720704},
   'hidden': 4544,
   'vocabulary': 65024,
   'norm': 'layernorm',
   'norm_bias': True,
   'tied': True,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 71, 'kv_heads': 1, 'head_size': 64, 'joined': True},
     'mlp': {'inner': 18176, 'gated': False, 'activation': 'gelu'},
     'parallel': True,
    },
   ],
  },
  'falcon-40b': {
   'source': 'Falcon (2311.16867); config.json of tiiuae/falcon-40b',
   'family': 'falcon',
   'sizes': {'parameters': 41303293952},
   'hidden': 8192,
   'vocabulary': 65024,
   'norm': 'layernorm',
   'norm_bias': True,
   'tied': True,
   'blocks': [
    {
     'repeat': 60,
     'attention': {'heads': 128, 'kv_heads': 8, 'head_size': 64, 'joined': True},
     'mlp': {'inner': 32768, 'gated': False, 'activation': 'gelu'},
     'parallel': True,
     'own_norm': True,
    },
   ],
  },
 },
}
