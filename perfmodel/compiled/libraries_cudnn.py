"""Compiled from libraries/cudnn.yaml by `python -m perfmodel.compiled`."""

HASH = "f1eb16c0f2548554"
DOCUMENT = {
 'library': 'cuDNN',
 'kernels': {
  'cudnn': {
   'operator': 'attention',
   'schedule': 'tiled-3',
   'instruction': 'native',
   'overlap': 'warps',
   'runs_on': {'instruction': ['wgmma', 'tcgen05']},
   'fallback': 'flash2',
   'head_dims': [32, 64, 96, 128, 192, 256],
   'ping_pong': True,
   'tiles': {
    64: [[128, 128, 384]],
    128: [[128, 128, 384]],
    256: [[128, 64, 384]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'decode': {
    64: [[64, 128, 128]],
    128: [[64, 128, 128]],
    256: [[64, 64, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'specialises': True,
   'source': 'FlashAttention-3 (2407.08608) section 4.1: on a par with it on Hopper',
  },
 },
}
