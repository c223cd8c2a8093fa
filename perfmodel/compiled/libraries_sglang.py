"""Compiled from libraries/sglang.yaml by `python -m perfmodel.compiled`."""

HASH = "4333f0f7ea1c9091"
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
   'chain': {
    'steps': [['data', 'fp32', 50], ['fp32', 'fp32', 0], ['fp32', 'fp8', 0], ['fp8', 'fp8', 0]],
    'start_seconds': 4.5e-07,
   },
   'source': "aiconfigurator, collector/sglang/collect_computescale.py (_static_quantize_e4m3_per_tensor): out.copy_((x / scale).clamp(...).to(fp8)), framework operators. x / scale has a scale of one element, which is no scalar: the result is fp32, and types and strides that differ take the kernel that computes each element's offset and looks up its type (CUDALoops.cuh, launch_legacy_kernel); that those are 50 operations, and the half microsecond in which each kernel loads its parameters, were settled by published runs",
  },
 },
}
