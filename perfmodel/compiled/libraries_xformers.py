"""Compiled from libraries/xformers.yaml by `python -m perfmodel.compiled`."""

HASH = "6a78900587b80f9c"
DOCUMENT = {
 'library': 'xFormers',
 'kernels': {
  'xformers': {
   'operator': 'attention',
   'schedule': 'tiled-2',
   'instruction': 'register',
   'backward': 0.35,
   'head_dims': [32, 64, 96, 128, 192, 256],
   'passed_columns': 32,
   'stages': 1,
   'tiles': {
    64: [[64, 64, 128]],
    128: [[64, 128, 128], [32, 128, 128], [64, 64, 128]],
    256: [[32, 128, 128], [32, 32, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'decode': {
    64: [[64, 64, 128]],
    128: [[64, 128, 128], [32, 128, 128], [64, 64, 128]],
    256: [[32, 128, 128], [32, 32, 128]],
    512: [[64, 16, 128], [16, 16, 64]],
   },
   'source': 'xFormers CUTLASS fMHA: 64x64 tiles, 64x128 for heads to 128 (fmha_cutlassF_f16_aligned_64x128_rf_sm80) and 32x128 beyond or before Ampere; probabilities reach the second product through shared memory (AccumulatorSharedStorage), warps of 32x32; query blocks on the grid; that the backward loop keeps 0.35 of the matrix rate was settled by published runs (FlashAttention-2, figure 5)',
  },
 },
}
