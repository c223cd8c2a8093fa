"""Compiled from presets/palm.yaml by `python -m perfmodel.compiled`."""

HASH = "e7cee0ebd78d052a"
DOCUMENT = {
 'networks': {
  'palm-540b': {
   'source': 'PaLM (2204.02311) section 2 and table 1',
   'family': 'palm',
   'sizes': {'parameters': 540000000000},
   'hidden': 18432,
   'vocabulary': 256000,
   'norm': 'layernorm',
   'tied': True,
   'blocks': [
    {
     'repeat': 118,
     'attention': {'heads': 48, 'kv_heads': 1, 'head_size': 256},
     'mlp': {'inner': 73728},
     'parallel': True,
    },
   ],
  },
  'palm-62b': {
   'source': 'PaLM (2204.02311) table 1',
   'family': 'palm',
   'sizes': {'parameters': 62500000000},
   'hidden': 8192,
   'vocabulary': 256000,
   'norm': 'layernorm',
   'tied': True,
   'blocks': [
    {
     'repeat': 64,
     'attention': {'heads': 32, 'kv_heads': 1, 'head_size': 256},
     'mlp': {'inner': 32768},
     'parallel': True,
    },
   ],
  },
  'palm-8b': {
   'source': 'PaLM (2204.02311) table 1',
   'family': 'palm',
   'sizes': {'parameters': 8630000000},
   'hidden': 4096,
   'vocabulary': 256000,
   'norm': 'layernorm',
   'tied': True,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 16, 'kv_heads': 1, 'head_size': 256},
     'mlp': {'inner': 16384},
     'parallel': True,
    },
   ],
  },
 },
}
