"""Compiled from presets/t5.yaml by `python -m perfmodel.compiled`."""

HASH = "417b35bca02a4384"
DOCUMENT = {
 'networks': {
  't5-small': {
   'source': 'T5 (1910.10683) section 2.1; config.json of t5-small',
   'family': 't5',
   'sizes': {'parameters': 60506624},
   'hidden': 512,
   'vocabulary': 32128,
   'tied': True,
   'dropout': 0.1,
   'encoder': [
    {
     'repeat': 6,
     'attention': {
      'heads': 8,
      'kv_heads': 8,
      'head_size': 64,
      'causal': False,
      'rotary': False,
      'relative_buckets': 32,
     },
     'mlp': {'inner': 2048, 'gated': False, 'activation': 'relu'},
    },
   ],
   'blocks': [
    {
     'repeat': 6,
     'attention': {'heads': 8, 'kv_heads': 8, 'head_size': 64, 'rotary': False, 'relative_buckets': 32},
     'mlp': {'inner': 2048, 'gated': False, 'activation': 'relu'},
     'cross': {'heads': 8, 'kv_heads': 8, 'head_size': 64, 'causal': False, 'rotary': False},
    },
   ],
  },
  't5-base': {
   'source': 'T5 (1910.10683) section 2.1; config.json of t5-base',
   'family': 't5',
   'sizes': {'parameters': 222903552},
   'hidden': 768,
   'vocabulary': 32128,
   'tied': True,
   'dropout': 0.1,
   'encoder': [
    {
     'repeat': 12,
     'attention': {
      'heads': 12,
      'kv_heads': 12,
      'head_size': 64,
      'causal': False,
      'rotary': False,
      'relative_buckets': 32,
     },
     'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu'},
    },
   ],
   'blocks': [
    {
     'repeat': 12,
     'attention': {
      'heads': 12,
      'kv_heads': 12,
      'head_size': 64,
      'rotary': False,
      'relative_buckets': 32,
     },
     'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu'},
     'cross': {'heads': 12, 'kv_heads': 12, 'head_size': 64, 'causal': False, 'rotary': False},
    },
   ],
  },
  't5-large': {
   'source': 'T5 (1910.10683) section 2.1; config.json of t5-large',
   'family': 't5',
   'sizes': {'parameters': 737668096},
   'hidden': 1024,
   'vocabulary': 32128,
   'tied': True,
   'dropout': 0.1,
   'encoder': [
    {
     'repeat': 24,
     'attention': {
      'heads': 16,
      'kv_heads': 16,
      'head_size': 64,
      'causal': False,
      'rotary': False,
      'relative_buckets': 32,
     },
     'mlp': {'inner': 4096, 'gated': False, 'activation': 'relu'},
    },
   ],
   'blocks': [
    {
     'repeat': 24,
     'attention': {
      'heads': 16,
      'kv_heads': 16,
      'head_size': 64,
      'rotary': False,
      'relative_buckets': 32,
     },
     'mlp': {'inner': 4096, 'gated': False, 'activation': 'relu'},
     'cross': {'heads': 16, 'kv_heads': 16, 'head_size': 64, 'causal': False, 'rotary': False},
    },
   ],
  },
  'switch-base-8': {
   'source': 'Switch Transformers (2101.03961); config.json of switch-base-8',
   'family': 'switch_transformers',
   'sizes': {'parameters': 619339008},
   'hidden': 768,
   'vocabulary': 32128,
   'tied': True,
   'dropout': 0.1,
   'encoder': [
    {
     'repeat': 6,
     'blocks': [
      {
       'attention': {
        'heads': 12,
        'kv_heads': 12,
        'head_size': 64,
        'causal': False,
        'rotary': False,
        'relative_buckets': 32,
       },
       'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu'},
      },
      {
       'attention': {
        'heads': 12,
        'kv_heads': 12,
        'head_size': 64,
        'causal': False,
        'rotary': False,
        'relative_buckets': 32,
       },
       'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu', 'experts': 8, 'chosen': 1},
      },
     ],
    },
   ],
   'blocks': [
    {
     'repeat': 6,
     'blocks': [
      {
       'attention': {
        'heads': 12,
        'kv_heads': 12,
        'head_size': 64,
        'rotary': False,
        'relative_buckets': 32,
       },
       'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu'},
       'cross': {'heads': 12, 'kv_heads': 12, 'head_size': 64, 'causal': False, 'rotary': False},
      },
      {
       'attention': {
        'heads': 12,
        'kv_heads': 12,
        'head_size': 64,
        'rotary': False,
        'relative_buckets': 32,
       },
       'mlp': {'inner': 3072, 'gated': False, 'activation': 'relu', 'experts': 8, 'chosen': 1},
       'cross': {'heads': 12, 'kv_heads': 12, 'head_size': 64, 'causal': False, 'rotary': False},
      },
     ],
    },
   ],
  },
 },
}
