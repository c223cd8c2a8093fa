"""Compiled from networks/hosts.yaml by `python -m perfmodel.compiled`."""

HASH = "c9552cbb3da69745"
DOCUMENT = {
 'version': 1,
 'hosts': {
  'eager': {
   'forward_seconds': 8e-06,
   'backward_seconds': 6e-06,
   'source': 'round figures: a plain operator of PyTorch from Python, and from its autograd engine',
  },
  'compile': {
   'forward_seconds': 4e-06,
   'backward_seconds': 4e-06,
   'source': "round figures: a kernel of inductor's wrapper",
  },
  'megatron': {
   'forward_seconds': 0.000114,
   'backward_seconds': 0.0,
   'micro_batch_seconds': 0.0029,
   'source': 'least squares over 880 steps of Megatron-DeepSpeed on A100 (vTrain, 2312.12391); a kernel stands for all the Python around it: modules, random states, views',
  },
  'graph': {
   'forward_seconds': 0.0,
   'backward_seconds': 0.0,
   'source': 'CUDA graphs: one launch for all',
  },
  'launches': {
   'forward_seconds': 2.5e-06,
   'backward_seconds': 2.5e-06,
   'source': 'cudaLaunchKernel from C++ takes 2 to 3 us: recalled from memory',
  },
 },
}
