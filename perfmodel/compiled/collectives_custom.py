"""Compiled from collectives/custom.yaml by `python -m perfmodel.compiled`."""

HASH = "f6d4e251cef95c6c"
DOCUMENT = {
 'version': 1,
 'libraries': {
  'vllm': {
   'ranks': [2, 4, 6, 8],
   'most_bytes': 8388607,
   'one_shot_below': {2: 8388608, 4: 524288, 6: 262144, 8: 262144},
   'source': 'vLLM 0.14, csrc/custom_all_reduce.cuh (512 KiB of up to 4 ranks, 256 KiB of up to 8) and custom_all_reduce.py (less than 8 MiB); needs NVLink between all ranks',
  },
  'sglang': {
   'ranks': [2, 4, 6, 8],
   'most_bytes': 8388608,
   'one_shot_below': {2: 8388609, 4: 524288, 6: 262144, 8: 262144},
   'source': 'SGLang 0.5.9, the same kernels (sgl-kernel, custom_all_reduce.cuh), 8 MiB included',
  },
  'tensorrt-llm': {
   'aliases': ['trtllm', 'trt-llm'],
   'ranks': [2, 4, 6, 8],
   'most_bytes': 8000000,
   'one_shot_below': {2: 16000001, 4: 1048576, 6: 524288, 8: 524288},
   'source': 'TensorRT-LLM 0.1x, AllreducePlugin selectImplementation and getMaxRequiredWorkspaceSize, from memory: unverified',
  },
 },
}
