"""Compiled from presets/deepseek.yaml by `python -m perfmodel.compiled`."""

HASH = "625938f9b8d4b9a5"
DOCUMENT = {
 'networks': {
  'deepseek-v2-lite': {
   'source': 'DeepSeek-V2 (2405.04434) appendix B; config.json of DeepSeek-V2-Lite',
   'family': 'deepseek_v2',
   'sizes': {'parameters': 15706484224},
   'hidden': 2048,
   'vocabulary': 102400,
   'blocks': [
    {
     'attention': {
      'heads': 16,
      'kv_heads': 16,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128},
     },
     'mlp': {'inner': 10944},
    },
    {
     'repeat': 26,
     'attention': {
      'heads': 16,
      'kv_heads': 16,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128},
     },
     'mlp': {'inner': 1408, 'experts': 64, 'chosen': 6, 'shared_inner': 2816},
    },
   ],
  },
  'deepseek-v2': {
   'source': 'DeepSeek-V2 (2405.04434) section 3.1.2; config.json of DeepSeek-V2',
   'family': 'deepseek_v2',
   'sizes': {'parameters': 235741434880, 'active': 21000000000},
   'hidden': 5120,
   'vocabulary': 102400,
   'blocks': [
    {
     'attention': {
      'heads': 128,
      'kv_heads': 128,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128, 'q_rank': 1536},
     },
     'mlp': {'inner': 12288},
    },
    {
     'repeat': 59,
     'attention': {
      'heads': 128,
      'kv_heads': 128,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128, 'q_rank': 1536},
     },
     'mlp': {'inner': 1536, 'experts': 160, 'chosen': 6, 'shared_inner': 3072},
    },
   ],
  },
  'deepseek-v3': {
   'aliases': ['deepseek-r1', 'deepseek-v3.1'],
   'source': 'DeepSeek-V3 (2412.19437) section 4.2; config.json of DeepSeek-V3, without the module that predicts further tokens; active parameters without the input embedding',
   'family': 'deepseek_v3',
   'sizes': {'parameters': 671000000000, 'active': 37000000000},
   'hidden': 7168,
   'vocabulary': 129280,
   'blocks': [
    {
     'repeat': 3,
     'attention': {
      'heads': 128,
      'kv_heads': 128,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128, 'q_rank': 1536},
     },
     'mlp': {'inner': 18432},
    },
    {
     'repeat': 58,
     'attention': {
      'heads': 128,
      'kv_heads': 128,
      'head_size': 192,
      'latent': {'kv_rank': 512, 'nope': 128, 'rope': 64, 'value': 128, 'q_rank': 1536},
     },
     'mlp': {
      'inner': 2048,
      'experts': 256,
      'chosen': 8,
      'shared_inner': 2048,
      'router_bias': True,
     },
    },
   ],
  },
 },
}
