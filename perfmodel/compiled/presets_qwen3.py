"""Compiled from presets/qwen3.yaml by `python -m perfmodel.compiled`."""

HASH = "3b69f6588603e354"
DOCUMENT = {
 'networks': {
  'qwen3-0.6b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-0.6B',
   'family': 'qwen3',
   'sizes': {'parameters': 596049920},
   'hidden': 1024,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 3072},
    },
   ],
  },
  'qwen3-1.7b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-1.7B',
   'family': 'qwen3',
   'sizes': {'parameters': 1720574976},
   'hidden': 2048,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 6144},
    },
   ],
  },
  'qwen3-4b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-4B',
   'family': 'qwen3',
   'sizes': {'parameters': 4022468096},
   'hidden': 2560,
   'vocabulary': 151936,
   'tied': True,
   'blocks': [
    {
     'repeat': 36,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 9728},
    },
   ],
  },
  'qwen3-8b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-8B',
   'family': 'qwen3',
   'sizes': {'parameters': 8190735360},
   'hidden': 4096,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 36,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 12288},
    },
   ],
  },
  'qwen3-14b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-14B',
   'family': 'qwen3',
   'sizes': {'parameters': 14768307200},
   'hidden': 5120,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 40,
     'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 17408},
    },
   ],
  },
  'qwen3-32b': {
   'source': 'Qwen3 (2505.09388) table 1; config.json of Qwen3-32B',
   'family': 'qwen3',
   'sizes': {'parameters': 32762123264},
   'hidden': 5120,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 64,
     'attention': {'heads': 64, 'kv_heads': 8, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 25600},
    },
   ],
  },
  'qwen3-30b-a3b': {
   'source': 'Qwen3 (2505.09388) table 2; config.json of Qwen3-30B-A3B',
   'family': 'qwen3_moe',
   'sizes': {'parameters': 30532122624, 'active': 3353032704},
   'hidden': 2048,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 48,
     'attention': {'heads': 32, 'kv_heads': 4, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 768, 'experts': 128, 'chosen': 8},
    },
   ],
  },
  'qwen3-235b-a22b': {
   'source': 'Qwen3 (2505.09388) table 2; config.json of Qwen3-235B-A22B',
   'family': 'qwen3_moe',
   'sizes': {'parameters': 235093634560, 'active': 22000000000},
   'hidden': 4096,
   'vocabulary': 151936,
   'blocks': [
    {
     'repeat': 94,
     'attention': {'heads': 64, 'kv_heads': 4, 'head_size': 128, 'head_norm': True},
     'mlp': {'inner': 1536, 'experts': 128, 'chosen': 8},
    },
   ],
  },
 },
}
