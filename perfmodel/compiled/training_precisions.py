"""Compiled from training/precisions.yaml by `python -m perfmodel.compiled`."""

HASH = "e28e73d9846a2068"
DOCUMENT = {
 'version': 1,
 'precisions': {
  'fp32': {
   'about': 'everything in 32 bits',
   'weights': 'fp32',
   'gradients': 'fp32',
   'states': 'fp32',
   'source': 'PyTorch default type',
  },
  'mixed': {
   'about': '16-bit weights and gradients, fp32 master weights and states',
   'weights': 'bf16',
   'gradients': 'bf16',
   'master': 'fp32',
   'states': 'fp32',
   'source': 'Micikevicius et al. 2017 (1710.03740); Rajbhandari et al. 2019 (1910.02054), §3.1',
  },
  'megatron': {
   'about': '16-bit weights, gradients added up in fp32, fp32 master weights and states',
   'weights': 'bf16',
   'gradients': 'fp32',
   'master': 'fp32',
   'states': 'fp32',
   'source': 'Megatron-LM, theoretical_memory_usage.py; DeepSpeed, estimate_zero3_model_states_mem_needs',
  },
  'fsdp': {
   'about': 'fp32 weights in shards, gathered a layer at a time in 16 bits',
   'weights': 'fp32',
   'gradients': 'fp32',
   'states': 'fp32',
   'copies': [{'dtype': 'bf16', 'lives': 'layer'}],
   'source': 'PyTorch FSDP, MixedPrecision and MixedPrecisionPolicy; torchtitan',
  },
  'autocast': {
   'about': 'fp32 weights, cast to 16 bits once in a forward pass',
   'weights': 'fp32',
   'gradients': 'fp32',
   'states': 'fp32',
   'copies': [{'dtype': 'bf16', 'lives': 'forward'}],
   'source': 'torch.autocast, cache_enabled',
  },
  'bf16-moments': {
   'about': '16-bit weights and moments, fp32 gradients and master weights',
   'weights': 'bf16',
   'gradients': 'fp32',
   'master': 'fp32',
   'states': 'bf16',
   'source': 'DeepSeek-V3 (2412.19437), §3.3.3',
  },
  'bf16': {
   'about': 'everything in 16 bits, with stochastic rounding',
   'weights': 'bf16',
   'gradients': 'bf16',
   'states': 'bf16',
   'source': 'Zamirai et al. 2020 (2010.06192)',
  },
  'fp8': {
   'about': 'as megatron, with an 8-bit copy of the weights and its transpose',
   'weights': 'bf16',
   'gradients': 'fp32',
   'master': 'fp32',
   'states': 'fp32',
   'copies': [{'dtype': 'fp8', 'lives': 'step'}, {'dtype': 'fp8', 'lives': 'step'}],
   'source': 'Transformer Engine, fp8 weights cached between micro-batches',
  },
 },
}
