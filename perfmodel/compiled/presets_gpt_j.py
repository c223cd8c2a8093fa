"""Compiled from presets/gpt-j.yaml by `python -m perfmodel.compiled`."""

HASH = "95c310d18b906710"
DOCUMENT = {
 'networks': {
  'gpt-j-6b': {
   'aliases': ['gptj-6b'],
   'source': 'config.json of EleutherAI/gpt-j-6b',
   'family': 'gptj',
   'sizes': {'parameters': 6050882784},
   'hidden': 4096,
   'vocabulary': 50400,
   'norm': 'layernorm',
   'norm_bias': True,
   'head_bias': True,
   'blocks': [
    {
     'repeat': 28,
     'attention': {'heads': 16, 'kv_heads': 16, 'head_size': 256},
     'mlp': {'inner': 16384, 'gated': False, 'activation': 'gelu_new', 'bias': True},
     'parallel': True,
    },
   ],
  },
 },
}
