"""Compiled from presets/qwen2.yaml by `python -m perfmodel.compiled`."""

HASH = "6de0df9d8fab37f4"
DOCUMENT = {
 'networks': {
  'qwen2.5-0.5b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-0.5B',
   'family': 'qwen2',
   'sizes': {'parameters': 494032768},
   'hidden': 896,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 24,
     'attention': {'heads': 14, 'kv_heads': 2, 'head_size': 64, 'qkv_bias': True},
     'mlp': {'inner': 4864},
    },
   ],
  },
  'qwen2.5-1.5b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-1.5B',
   'family': 'qwen2',
   'sizes': {'parameters': 1543714304},
   'hidden': 1536,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 12, 'kv_heads': 2, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 8960},
    },
   ],
  },
  'qwen2.5-3b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-3B',
   'family': 'qwen2',
   'sizes': {'parameters': 3085938688},
   'hidden': 2048,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 36,
     'attention': {'heads': 16, 'kv_heads': 2, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 11008},
    },
   ],
  },
  'qwen2.5-7b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-7B',
   'family': 'qwen2',
   'sizes': {'parameters': 7615616512},
   'hidden': 3584,
   'vocabulary': 152064,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 28, 'kv_heads': 4, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 18944},
    },
   ],
  },
  'qwen2.5-14b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-14B',
   'family': 'qwen2',
   'sizes': {'parameters': 14770033664},
   'hidden': 5120,
   'vocabulary': 152064,
   'blocks': [
    {
     'repeat': 48,
     'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 13824},
    },
   ],
  },
  'qwen2.5-32b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-32B',
   'family': 'qwen2',
   'sizes': {'parameters': 32763876352},
   'hidden': 5120,
   'vocabulary': 152064,
   'blocks': [
    {
     'repeat': 64,
     'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 27648},
    },
   ],
  },
  'qwen2.5-72b': {
   'source': 'Qwen2.5 (2412.15115) table 1; config.json of Qwen2.5-72B',
   'family': 'qwen2',
   'sizes': {'parameters': 72706203648},
   'hidden': 8192,
   'vocabulary': 152064,
   'blocks': [
    {
     'repeat': 80,
     'attention': {'heads': 64, 'kv_heads': 8, 'head_size': 128, 'qkv_bias': True},
     'mlp': {'inner': 29568},
    },
   ],
  },
  'qwen1.5-moe-a2.7b': {
   'source': 'config.json of Qwen1.5-MoE-A2.7B; active parameters of its announcement',
   'family': 'qwen2_moe',
   'sizes': {'parameters': 14315784192, 'active': 2700000000},
   'hidden': 2048,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 24,
     'attention': {'heads': 16, 'kv_heads': 16, 'head_size': 128, 'qkv_bias': True},
     'mlp': {
      'inner': 1408,
      'experts': 60,
      'chosen': 4,
      'shared_inner': 5632,
      'shared_gate': True,
     },
    },
   ],
  },
 },
}
