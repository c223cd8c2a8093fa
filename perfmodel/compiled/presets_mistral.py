"""Compiled from presets/mistral.yaml by `python -m perfmodel.compiled`."""

HASH = "d5eb62829637f5d8"
DOCUMENT = {
 'networks': {
  'mistral-7b-v0.1': {
   'aliases': ['mistral-7b'],
   'about': 'With its window of 4,096 tokens',
   'source': 'Mistral 7B (2310.06825) table 1; config.json of Mistral-7B-v0.1',
   'family': 'mistral',
   'sizes': {'parameters': 7241732096},
   'hidden': 4096,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128, 'window': 4096},
     'mlp': {'inner': 14336},
    },
   ],
  },
  'mistral-7b-v0.3': {
   'about': 'Without a window; a larger vocabulary',
   'source': 'config.json of Mistral-7B-v0.3',
   'family': 'mistral',
   'sizes': {'parameters': 7248023552},
   'hidden': 4096,
   'vocabulary': 32768,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 14336},
    },
   ],
  },
  'mistral-nemo-12b': {
   'source': 'config.json of Mistral-Nemo-Base-2407',
   'family': 'mistral',
   'sizes': {'parameters': 12247782400},
   'hidden': 5120,
   'vocabulary': 131072,
   'blocks': [
    {
     'repeat': 40,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 14336},
    },
   ],
  },
 },
}
