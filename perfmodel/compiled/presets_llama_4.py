"""Compiled from presets/llama-4.yaml by `python -m perfmodel.compiled`."""

HASH = "c71cc50f735796b9"
DOCUMENT = {
 'networks': {
  'llama-4-scout': {
   'aliases': ['llama-4-scout-17b-16e', 'llama4-scout'],
   'about': 'The text model; its norm of queries and keys has no weights and is left out',
   'source': 'config.json of Llama-4-Scout-17B-16E (text_config); totals with the vision part are published',
   'family': 'llama4_text',
   'hidden': 5120,
   'vocabulary': 202048,
   'blocks': [
    {
     'repeat': 12,
     'blocks': [
      {
       'repeat': 3,
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'chunk': 8192},
       'mlp': {'inner': 8192, 'experts': 16, 'chosen': 1, 'shared_inner': 8192},
      },
      {
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'rotary': False},
       'mlp': {'inner': 8192, 'experts': 16, 'chosen': 1, 'shared_inner': 8192},
      },
     ],
    },
   ],
  },
  'llama-4-maverick': {
   'aliases': ['llama-4-maverick-17b-128e', 'llama4-maverick'],
   'about': 'The text model; its norm of queries and keys has no weights and is left out',
   'source': 'config.json of Llama-4-Maverick-17B-128E (text_config); totals with the vision part are published',
   'family': 'llama4_text',
   'hidden': 5120,
   'vocabulary': 202048,
   'blocks': [
    {
     'repeat': 12,
     'blocks': [
      {
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'chunk': 8192},
       'mlp': {'inner': 16384},
      },
      {
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'chunk': 8192},
       'mlp': {'inner': 8192, 'experts': 128, 'chosen': 1, 'shared_inner': 8192},
      },
      {
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'chunk': 8192},
       'mlp': {'inner': 16384},
      },
      {
       'attention': {'heads': 40, 'kv_heads': 8, 'head_size': 128, 'rotary': False},
       'mlp': {'inner': 8192, 'experts': 128, 'chosen': 1, 'shared_inner': 8192},
      },
     ],
    },
   ],
  },
 },
}
