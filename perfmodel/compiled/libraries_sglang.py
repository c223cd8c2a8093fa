"""Compiled from libraries/sglang.yaml by `python -m perfmodel.compiled`."""

HASH = "7f3eb49a174250ec"
DOCUMENT = {
 'library': 'SGLang',
 'kernels': {
  'sglang-triton': {
   'operator': 'attention',
   'schedule': 'tiled-2',
   'instruction': 'native',
   'overlap': 'warps',
   'share': 0.6,
   'head_dims': [16, 32, 64, 128, 256],
   'wave_rule': {
    'keys': 32,
    'waves': 1,
    'doubles_from': 64,
    'most': 8,
    'rounds_up': True,
    'begun': True,
   },
   'tiles': {
    64: [[128, 64, 128], [128, 128, 256]],
    128: [[128, 64, 256], [128, 128, 256], [64, 32, 128]],
    256: [[64, 64, 256], [64, 32, 128], [32, 16, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'decode': {256: [[16, 32, 128], [16, 16, 128]], 512: [[16, 16, 128], [16, 16, 64]]},
   'combine_loads': 1,
   'source': 'SGLang triton_backend.py (get_num_kv_splits_triton, triton_attention_num_kv_splits 8) and decode_attention.py (BLOCK_H 16, BLOCK 32, 4 warps, 2 stages); that the forward loop keeps 0.6 of the matrix rate was settled by published runs (FlashAttention-2, figures 4 to 7)',
  },
  'eager-quantise': {
   'operator': 'quantise',
   'chain': {'kernels': 6, 'streams': 13},
   'source': 'inferred from published rates (8 us at least, 27 bytes an element): magnitude, maximum, scale, division, clamp and conversion as framework operators',
  },
 },
}
