"""Compiled from presets/gemma.yaml by `python -m perfmodel.compiled`."""

HASH = "d764b316c983e357"
DOCUMENT = {
 'networks': {
  'gemma-2-2b': {
   'aliases': ['gemma2-2b'],
   'source': 'Gemma 2 (2408.00118) table 1; config.json of gemma-2-2b; soft caps of scores and logits left out',
   'family': 'gemma2',
   'sizes': {'parameters': 2614341888},
   'hidden': 2304,
   'vocabulary': 256000,
   'tied': True,
   'blocks': [
    {
     'repeat': 13,
     'blocks': [
      {
       'attention': {'heads': 8, 'kv_heads': 4, 'head_size': 256, 'window': 4096},
       'mlp': {'inner': 9216, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 8, 'kv_heads': 4, 'head_size': 256},
       'mlp': {'inner': 9216, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
   ],
  },
  'gemma-2-9b': {
   'aliases': ['gemma2-9b'],
   'source': 'Gemma 2 (2408.00118) table 1; config.json of gemma-2-9b; soft caps of scores and logits left out',
   'family': 'gemma2',
   'sizes': {'parameters': 9241705984},
   'hidden': 3584,
   'vocabulary': 256000,
   'tied': True,
   'blocks': [
    {
     'repeat': 21,
     'blocks': [
      {
       'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 256, 'window': 4096},
       'mlp': {'inner': 14336, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 256},
       'mlp': {'inner': 14336, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
   ],
  },
  'gemma-2-27b': {
   'aliases': ['gemma2-27b'],
   'source': 'Gemma 2 (2408.00118) table 1; config.json of gemma-2-27b; soft caps of scores and logits left out',
   'family': 'gemma2',
   'sizes': {'parameters': 27227128320},
   'hidden': 4608,
   'vocabulary': 256000,
   'tied': True,
   'blocks': [
    {
     'repeat': 23,
     'blocks': [
      {
       'attention': {'heads': 32, 'kv_heads': 16, 'head_size': 128, 'window': 4096},
       'mlp': {'inner': 36864, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 32, 'kv_heads': 16, 'head_size': 128},
       'mlp': {'inner': 36864, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
   ],
  },
  'gemma-3-1b': {
   'aliases': ['gemma3-1b'],
   'source': 'Gemma 3 (2503.19786) table 1; config.json of gemma-3-1b-pt',
   'family': 'gemma3_text',
   'sizes': {'parameters': 999885952},
   'hidden': 1152,
   'vocabulary': 262144,
   'tied': True,
   'blocks': [
    {
     'repeat': 4,
     'blocks': [
      {
       'repeat': 5,
       'attention': {'heads': 4, 'kv_heads': 1, 'head_size': 256, 'window': 512, 'head_norm': True},
       'mlp': {'inner': 6912, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 4, 'kv_heads': 1, 'head_size': 256, 'head_norm': True},
       'mlp': {'inner': 6912, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
    {
     'repeat': 2,
     'attention': {'heads': 4, 'kv_heads': 1, 'head_size': 256, 'window': 512, 'head_norm': True},
     'mlp': {'inner': 6912, 'activation': 'gelu_new'},
     'sandwich': True,
    },
   ],
  },
  'gemma-3-4b': {
   'aliases': ['gemma3-4b'],
   'about': 'The text model',
   'source': 'Gemma 3 (2503.19786) table 1; config.json of gemma-3-4b-pt',
   'family': 'gemma3_text',
   'hidden': 2560,
   'vocabulary': 262208,
   'tied': True,
   'blocks': [
    {
     'repeat': 5,
     'blocks': [
      {
       'repeat': 5,
       'attention': {'heads': 8, 'kv_heads': 4, 'head_size': 256, 'window': 1024, 'head_norm': True},
       'mlp': {'inner': 10240, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 8, 'kv_heads': 4, 'head_size': 256, 'head_norm': True},
       'mlp': {'inner': 10240, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
    {
     'repeat': 4,
     'attention': {'heads': 8, 'kv_heads': 4, 'head_size': 256, 'window': 1024, 'head_norm': True},
     'mlp': {'inner': 10240, 'activation': 'gelu_new'},
     'sandwich': True,
    },
   ],
  },
  'gemma-3-12b': {
   'aliases': ['gemma3-12b'],
   'about': 'The text model',
   'source': 'Gemma 3 (2503.19786) table 1; config.json of gemma-3-12b-pt',
   'family': 'gemma3_text',
   'hidden': 3840,
   'vocabulary': 262208,
   'tied': True,
   'blocks': [
    {
     'repeat': 8,
     'blocks': [
      {
       'repeat': 5,
       'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 256, 'window': 1024, 'head_norm': True},
       'mlp': {'inner': 15360, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 16, 'kv_heads': 8, 'head_size': 256, 'head_norm': True},
       'mlp': {'inner': 15360, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
   ],
  },
  'gemma-3-27b': {
   'aliases': ['gemma3-27b'],
   'about': 'The text model',
   'source': 'Gemma 3 (2503.19786) table 1; config.json of gemma-3-27b-pt',
   'family': 'gemma3_text',
   'hidden': 5376,
   'vocabulary': 262208,
   'tied': True,
   'blocks': [
    {
     'repeat': 10,
     'blocks': [
      {
       'repeat': 5,
       'attention': {'heads': 32, 'kv_heads': 16, 'head_size': 128, 'window': 1024, 'head_norm': True},
       'mlp': {'inner': 21504, 'activation': 'gelu_new'},
       'sandwich': True,
      },
      {
       'attention': {'heads': 32, 'kv_heads': 16, 'head_size': 128, 'head_norm': True},
       'mlp': {'inner': 21504, 'activation': 'gelu_new'},
       'sandwich': True,
      },
     ],
    },
    {
     'repeat': 2,
     'attention': {'heads': 32, 'kv_heads': 16, 'head_size': 128, 'window': 1024, 'head_norm': True},
     'mlp': {'inner': 21504, 'activation': 'gelu_new'},
     'sandwich': True,
    },
   ],
  },
 },
}
