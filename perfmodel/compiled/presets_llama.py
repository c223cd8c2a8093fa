"""Compiled from presets/llama.yaml by `python -m perfmodel.compiled`."""

HASH = "0d157eb83ad1c8ea"
DOCUMENT = {
 'networks': {
  'llama-7b': {
   'aliases': ['llama-1-7b'],
   'source': 'LLaMA (2302.13971) table 2; config.json',
   'family': 'llama',
   'sizes': {'parameters': 6738415616},
   'hidden': 4096,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 32, 'head_size': 128},
     'mlp': {'inner': 11008},
    },
   ],
  },
  'llama-13b': {
   'aliases': ['llama-1-13b'],
   'source': 'LLaMA (2302.13971) table 2; config.json',
   'family': 'llama',
   'sizes': {'parameters': 13015864320},
   'hidden': 5120,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 40,
     'attention': {'heads': 40, 'kv_heads': 40, 'head_size': 128},
     'mlp': {'inner': 13824},
    },
   ],
  },
  'llama-33b': {
   'aliases': ['llama-1-33b', 'llama-30b'],
   'source': 'LLaMA (2302.13971) table 2; config.json',
   'family': 'llama',
   'sizes': {'parameters': 32528943616},
   'hidden': 6656,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 60,
     'attention': {'heads': 52, 'kv_heads': 52, 'head_size': 128},
     'mlp': {'inner': 17920},
    },
   ],
  },
  'llama-65b': {
   'aliases': ['llama-1-65b'],
   'source': 'LLaMA (2302.13971) table 2; config.json',
   'family': 'llama',
   'sizes': {'parameters': 65285660672},
   'hidden': 8192,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 80,
     'attention': {'heads': 64, 'kv_heads': 64, 'head_size': 128},
     'mlp': {'inner': 22016},
    },
   ],
  },
  'llama-2-7b': {
   'aliases': ['llama2-7b'],
   'source': 'Llama 2 (2307.09288) section 2; config.json of Llama-2-7b-hf',
   'family': 'llama',
   'sizes': {'parameters': 6738415616},
   'hidden': 4096,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 32, 'head_size': 128},
     'mlp': {'inner': 11008},
    },
   ],
  },
  'llama-2-13b': {
   'aliases': ['llama2-13b'],
   'source': 'Llama 2 (2307.09288) section 2; config.json of Llama-2-13b-hf',
   'family': 'llama',
   'sizes': {'parameters': 13015864320},
   'hidden': 5120,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 40,
     'attention': {'heads': 40, 'kv_heads': 40, 'head_size': 128},
     'mlp': {'inner': 13824},
    },
   ],
  },
  'llama-2-70b': {
   'aliases': ['llama2-70b'],
   'source': 'Llama 2 (2307.09288) section 2; config.json of Llama-2-70b-hf',
   'family': 'llama',
   'sizes': {'parameters': 68976648192},
   'hidden': 8192,
   'vocabulary': 32000,
   'blocks': [
    {
     'repeat': 80,
     'attention': {'heads': 64, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 28672},
    },
   ],
  },
  'llama-3-8b': {
   'aliases': ['llama3-8b', 'llama-3.1-8b', 'llama3.1-8b'],
   'source': 'Llama 3 (2407.21783) table 3; config.json',
   'family': 'llama',
   'sizes': {'parameters': 8030261248},
   'hidden': 4096,
   'vocabulary': 128256,
   'blocks': [
    {
     'repeat': 32,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 14336},
    },
   ],
  },
  'llama-3-70b': {
   'aliases': ['llama3-70b', 'llama-3.1-70b', 'llama3.1-70b', 'llama-3.3-70b'],
   'source': 'Llama 3 (2407.21783) table 3; config.json',
   'family': 'llama',
   'sizes': {'parameters': 70553706496},
   'hidden': 8192,
   'vocabulary': 128256,
   'blocks': [
    {
     'repeat': 80,
     'attention': {'heads': 64, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 28672},
    },
   ],
  },
  'llama-3.1-405b': {
   'aliases': ['llama-3-405b', 'llama3-405b', 'llama3.1-405b'],
   'source': 'Llama 3 (2407.21783) table 3; config.json',
   'family': 'llama',
   'sizes': {'parameters': 405853388800},
   'hidden': 16384,
   'vocabulary': 128256,
   'blocks': [
    {
     'repeat': 126,
     'attention': {'heads': 128, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 53248},
    },
   ],
  },
  'llama-3.2-1b': {
   'aliases': ['llama3.2-1b'],
   'source': 'config.json of Llama-3.2-1B',
   'family': 'llama',
   'sizes': {'parameters': 1235814400},
   'hidden': 2048,
   'vocabulary': 128256,
   'tied': True,
   'blocks': [
    {
     'repeat': 16,
     'attention': {'heads': 32, 'kv_heads': 8, 'head_size': 64},
     'mlp': {'inner': 8192},
    },
   ],
  },
  'llama-3.2-3b': {
   'aliases': ['llama3.2-3b'],
   'source': 'config.json of Llama-3.2-3B',
   'family': 'llama',
   'sizes': {'parameters': 3212749824},
   'hidden': 3072,
   'vocabulary': 128256,
   'tied': True,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 24, 'kv_heads': 8, 'head_size': 128},
     'mlp': {'inner': 8192},
    },
   ],
  },
 },
}
