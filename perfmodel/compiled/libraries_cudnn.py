"""Compiled from libraries/cudnn.yaml by `python -m perfmodel.compiled`."""

HASH = "8ad4b97af852556c"
DOCUMENT = {
 'library': 'cuDNN',
 'kernels': {
  'cudnn': {
   'operator': 'attention',
   'schedule': 'tiled-3',
   'instruction': 'native',
   'overlap': 'pipelined',
   'runs_on': {'instruction': ['tcgen05']},
   'fallback': 'cudnn-hopper',
   'dispatches': True,
   'head_dims': [32, 64, 96, 128, 192, 256],
   'resident': 1,
   'tiles': {
    64: [[256, 128, 384]],
    128: [[256, 128, 384], [128, 128, 256]],
    256: [[128, 64, 256]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'decode': {
    64: [[128, 128, 256]],
    128: [[128, 128, 256]],
    256: [[128, 64, 256]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'specialises': True,
   'source': 'FlashAttention-4 (2603.05451), abstract and section 5: it is at most 1.3 times as fast as cuDNN 9.13 on B200, recalled from memory; that cuDNN has two query tiles in flight too is inferred from that, and no run here tests it',
  },
  'cudnn-hopper': {
   'operator': 'attention',
   'schedule': 'tiled-3',
   'instruction': 'native',
   'overlap': 'warps',
   'runs_on': {'instruction': ['wgmma']},
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
