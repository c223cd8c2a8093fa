"""Compiled from training/optimisers.yaml by `python -m perfmodel.compiled`."""

HASH = "5961e70636854689"
DOCUMENT = {
 'version': 1,
 'styles': {
  'multi-tensor': {
   'about': 'one kernel for as many tensors as its arguments hold, each pass once, the copy with it',
   'passes': 'fewest',
   'copy': 'within',
   'chunk': 65536,
   'blocks': 320,
   'tensors': [110, 64, 48, 36, 30, 26, 22, 20],
   'source': 'Apex, csrc/multi_tensor_apply.cuh; chunks of 2048 x 32 in apex/optimizers',
  },
  'fused': {
   'about': "PyTorch's fused=True: one pass for as many tensors as its arguments hold, the copy apart",
   'passes': 'fewest',
   'copy': 'apart',
   'chunk': 65536,
   'blocks': 320,
   'tensors': [110, 64, 48, 36, 30],
   'source': 'PyTorch, aten/src/ATen/native/cuda/MultiTensorApply.cuh, arguments of 4 KB',
  },
  'foreach': {
   'about': "PyTorch's default: one kernel for each operation, for as many tensors as its arguments hold",
   'passes': 'each',
   'copy': 'apart',
   'chunk': 65536,
   'blocks': 320,
   'tensors': [110, 64, 48, 36, 30],
   'source': 'PyTorch, aten/src/ATen/native/cuda/MultiTensorApply.cuh, arguments of 4 KB',
  },
  'for-loop': {
   'about': 'one kernel for each operation and each tensor',
   'passes': 'each',
   'copy': 'apart',
   'source': "PyTorch's foreach=False (torch/optim/adam.py, _single_tensor_adam)",
  },
 },
 'clipping': {
  'apart': {
   'source': 'torch.nn.utils.clip_grad_norm_; Megatron-LM, megatron/core/optimizer/clip_grads.py',
   'steps': {
    'norm': {'reduction': 'G', 'to': 'norms', 'over': 'e', 'vector': 1},
    'scale': {'map': ['G', 'norms'], 'to': "G'", 'vector': 1},
   },
  },
  'folded': {
   'source': 'Apex FusedLAMB; DeepSpeed, runtime/fp16/unfused_optimizer.py, step_fused_lamb',
   'steps': {'norm': {'reduction': 'G', 'to': 'norms', 'over': 'e', 'vector': 1}},
  },
 },
 'optimisers': {
  'sgd': {
   'about': 'stochastic gradient descent',
   'source': 'Robbins & Monro 1951; torch/optim/sgd.py',
   'rules': [{'work': [{'steps': {'step': {'map': ['W', 'G'], 'to': "W'", 'vector': 1}}}]}],
  },
  'sgd-momentum': {
   'about': 'stochastic gradient descent with momentum',
   'source': 'Polyak 1964; torch/optim/sgd.py, _multi_tensor_sgd',
   'rules': [
    {
     'states': {'M': {}},
     'work': [
      {
       'steps': {
        'decay': {'map': 'M', 'to': "M'", 'vector': 1},
        'add': {'map': ["M'", 'G'], 'to': "M''", 'vector': 1},
        'step': {'map': ['W', "M''"], 'to': "W'", 'vector': 1},
       },
      },
     ],
    },
   ],
  },
  'adam': {
   'about': 'mean and mean square of the gradient',
   'source': 'Kingma & Ba 2014 (1412.6980), Algorithm 1; torch/optim/adam.py, _multi_tensor_adam',
   'rules': [
    {
     'states': {'M': {}, 'V': {}},
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'G'], 'to': "V''", 'vector': 2},
        'root': {'map': "V''", 'to': 'D', 'special': 1},
        'correct': {'map': 'D', 'to': "D'", 'vector': 1},
        'floor': {'map': "D'", 'to': "D''", 'vector': 1},
        'step': {'map': ['W', "M'", "D''"], 'to': "W'", 'vector': 2, 'special': 1},
       },
      },
     ],
    },
   ],
  },
  'adamw': {
   'about': 'Adam with decoupled weight decay',
   'source': 'Loshchilov & Hutter 2017 (1711.05101), Algorithm 2; torch/optim/adam.py, _multi_tensor_adam',
   'rules': [
    {
     'states': {'M': {}, 'V': {}},
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'G'], 'to': "V''", 'vector': 2},
        'root': {'map': "V''", 'to': 'D', 'special': 1},
        'correct': {'map': 'D', 'to': "D'", 'vector': 1},
        'floor': {'map': "D'", 'to': "D''", 'vector': 1},
        'step': {'map': ["W'", "M'", "D''"], 'to': "W''", 'vector': 2, 'special': 1},
        'shrink': {'map': 'W', 'to': "W'", 'vector': 1},
       },
      },
     ],
    },
   ],
  },
  'lamb': {
   'about': "Adam with steps in proportion to each tensor's norm",
   'source': 'You et al. 2019 (1904.00962), Algorithm 2; Apex, csrc/multi_tensor_lamb.cu',
   'rules': [
    {
     'states': {'M': {}, 'V': {}},
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'G'], 'to': "V''", 'vector': 2},
        'root': {'map': "V''", 'to': 'D', 'special': 1},
        'correct': {'map': 'D', 'to': "D'", 'vector': 1},
        'floor': {'map': "D'", 'to': "D''", 'vector': 1},
        'step': {'map': ['W', 'U', 'weight', 'size'], 'to': "W'", 'vector': 1},
        'update': {'map': ['W', "M'", "D''"], 'to': 'U', 'vector': 2, 'special': 1},
        'weight-norm': {'reduction': 'W', 'to': 'weight', 'over': 'e', 'vector': 1},
        'update-norm': {'reduction': 'U', 'to': 'size', 'over': 'e', 'vector': 1},
       },
      },
     ],
    },
   ],
  },
  'adam-8bit': {
   'about': 'Adam with both states in 8 bits and a scale for each block',
   'source': 'Dettmers et al. 2021 (2110.02861), §2; bitsandbytes, bitsandbytes/optim/optimizer.py',
   'settings': {
    'block': {
     'value': 2048,
     'meaning': 'states that share a scale',
     'source': '2110.02861, §2; 256 in newer bitsandbytes, optim/optimizer.py',
    },
    'smallest': {
     'value': 4096,
     'meaning': 'elements from which on states are narrowed',
     'source': 'bitsandbytes, optimizer.py, min_8bit_size',
    },
   },
   'rules': [
    {
     'kinds': ['matrix', 'vector'],
     'fewest': 'smallest',
     'states': {
      'M': {'type': 'int8'},
      'V': {'type': 'int8'},
      'mean-scale': {'type': 'fp32', 'elements': 'ceil(p / block)'},
      'square-scale': {'type': 'fp32', 'elements': 'ceil(p / block)'},
     },
     'types': {'mean': 'fp32', 'square': 'fp32'},
     'work': [
      {
       'axes': {'b': 'ceil(p / block)', 'k': 'min(p, block)'},
       'along': {'mean-scale': 'b', 'square-scale': 'b'},
       'passes': 'fewest',
       'steps': {
        'widen': {
         'map': ['M', 'V', 'mean-scale', 'square-scale'],
         'to': ['mean', 'square'],
         'vector': 2,
        },
        'mean': {'map': ['mean', 'G'], 'to': "mean'", 'vector': 2},
        'square': {'map': ['square', 'G'], 'to': "square'", 'vector': 3},
        'step': {'map': ['W', "mean'", "square'"], 'to': "W'", 'vector': 5, 'special': 2},
        'mean-maximum': {'reduction': "mean'", 'to': "mean-scale'", 'over': 'k', 'vector': 1},
        'square-maximum': {'reduction': "square'", 'to': "square-scale'", 'over': 'k', 'vector': 1},
        'narrow': {'map': ["mean'", "square'"], 'to': ["M'", "V'"], 'vector': 10},
       },
      },
     ],
    },
    {'as': 'adam'},
   ],
  },
  'adafactor': {
   'about': 'mean squares by rows and columns, no mean',
   'source': 'Shazeer & Stern 2018 (1804.04235), Algorithm 4; torch/optim/_adafactor.py',
   'rules': [
    {
     'kinds': ['matrix', 'embedding'],
     'states': {'R': {'type': 'fp32', 'elements': 'm'}, 'C': {'type': 'fp32', 'elements': 'n'}},
     'work': [
      {
       'axes': {'m': 'm', 'n': 'n'},
       'along': {'R': 'm', 'C': 'n'},
       'steps': {
        'weight-norm': {'reduction': 'W', 'to': 'weight', 'over': 'n', 'vector': 1},
        'rows': {'reduction': ['G', 'R'], 'to': "R'", 'over': 'n', 'vector': 1},
        'columns': {'reduction': ['G', 'C'], 'to': "C'", 'over': 'm', 'vector': 1},
        'estimate': {'map': ["R'", "C'"], 'to': 'U', 'vector': 1},
        'correct': {'map': 'U', 'to': "U'", 'vector': 1},
        'floor': {'map': "U'", 'to': "U''", 'vector': 1},
        'root': {'map': "U''", 'to': "U'''", 'special': 1},
        'update': {'map': ["U'''", 'G'], 'to': "U''''", 'vector': 1},
        'update-norm': {'reduction': "U''''", 'to': 'size', 'over': 'n', 'vector': 1},
        'step': {'map': ['W', "U''''", 'weight', 'size'], 'to': "W'", 'vector': 1},
       },
      },
     ],
    },
    {
     'states': {'V': {'type': 'fp32'}},
     'work': [
      {
       'steps': {
        'weight-norm': {'reduction': 'W', 'to': 'weight', 'over': 'e', 'vector': 1},
        'square': {'map': ['V', 'G'], 'to': "V'", 'vector': 2},
        'estimate': {'map': "V'", 'to': 'U'},
        'floor': {'map': 'U', 'to': "U'", 'vector': 1},
        'root': {'map': "U'", 'to': "U''", 'special': 1},
        'update': {'map': ["U''", 'G'], 'to': "U'''", 'vector': 1},
        'update-norm': {'reduction': "U'''", 'to': 'size', 'over': 'e', 'vector': 1},
        'step': {'map': ['W', "U'''", 'weight', 'size'], 'to': "W'", 'vector': 1},
       },
      },
     ],
    },
   ],
  },
  'adafactor-momentum': {
   'about': 'Adafactor with a mean',
   'source': 'Shazeer & Stern 2018 (1804.04235), Algorithm 4 with β1; Transformers, optimization.py',
   'rules': [
    {
     'kinds': ['matrix', 'embedding'],
     'states': {
      'R': {'type': 'fp32', 'elements': 'm'},
      'C': {'type': 'fp32', 'elements': 'n'},
      'M': {},
     },
     'work': [
      {
       'axes': {'m': 'm', 'n': 'n'},
       'along': {'R': 'm', 'C': 'n'},
       'steps': {
        'weight-norm': {'reduction': 'W', 'to': 'weight', 'over': 'n', 'vector': 1},
        'rows': {'reduction': ['G', 'R'], 'to': "R'", 'over': 'n', 'vector': 1},
        'columns': {'reduction': ['G', 'C'], 'to': "C'", 'over': 'm', 'vector': 1},
        'estimate': {'map': ["R'", "C'"], 'to': 'U', 'vector': 1},
        'correct': {'map': 'U', 'to': "U'", 'vector': 1},
        'floor': {'map': "U'", 'to': "U''", 'vector': 1},
        'root': {'map': "U''", 'to': "U'''", 'special': 1},
        'update': {'map': ["U'''", 'G'], 'to': "U''''", 'vector': 1},
        'update-norm': {'reduction': "U''''", 'to': 'size', 'over': 'n', 'vector': 1},
        'step': {'map': ['W', "M'"], 'to': "W'", 'vector': 1},
        'mean': {'map': ['M', "U''''", 'weight', 'size'], 'to': "M'", 'vector': 3},
       },
      },
     ],
    },
    {
     'states': {'V': {'type': 'fp32'}, 'M': {}},
     'work': [
      {
       'steps': {
        'weight-norm': {'reduction': 'W', 'to': 'weight', 'over': 'e', 'vector': 1},
        'square': {'map': ['V', 'G'], 'to': "V'", 'vector': 2},
        'estimate': {'map': "V'", 'to': 'U'},
        'floor': {'map': 'U', 'to': "U'", 'vector': 1},
        'root': {'map': "U'", 'to': "U''", 'special': 1},
        'update': {'map': ["U''", 'G'], 'to': "U'''", 'vector': 1},
        'update-norm': {'reduction': "U'''", 'to': 'size', 'over': 'e', 'vector': 1},
        'step': {'map': ['W', "M'"], 'to': "W'", 'vector': 1},
        'mean': {'map': ['M', "U'''", 'weight', 'size'], 'to': "M'", 'vector': 3},
       },
      },
     ],
    },
   ],
  },
  'lion': {
   'about': 'the sign of an interpolated mean',
   'source': 'Chen et al. 2023 (2302.06675), Algorithm 2',
   'rules': [
    {
     'states': {'M': {}},
     'work': [
      {
       'steps': {
        'shrink': {'map': 'W', 'to': "W'", 'vector': 1},
        'blend': {'map': ['M', 'G'], 'to': 'U', 'vector': 2},
        'sign': {'map': 'U', 'to': "U'", 'vector': 1},
        'step': {'map': ["W'", "U'"], 'to': "W''", 'vector': 1},
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
       },
      },
     ],
    },
   ],
  },
  'muon': {
   'about': 'momentum made orthogonal, for matrices; AdamW for the rest',
   'source': 'Jordan et al. 2024, Muon; torch/optim/_muon.py',
   'settings': {
    'iterations': {
     'value': 5,
     'meaning': 'Newton-Schulz iterations',
     'source': 'torch/optim/_muon.py, DEFAULT_NS_STEPS',
    },
   },
   'rules': [
    {
     'kinds': ['matrix'],
     'states': {'M': {}},
     'types': {'X': 'bf16', 'P': 'bf16'},
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'nesterov': {'map': ["M'", 'G'], 'to': 'U', 'vector': 2},
        'narrow': {'map': 'U', 'to': 'X', 'vector': 1},
        'norm': {'reduction': 'X', 'to': 'size', 'over': 'e', 'vector': 1},
        'scale': {'map': ['X', 'size'], 'to': "X'", 'vector': 1},
       },
      },
      {'name': 'gram', 'gemm': ['s', 's', 'l'], 'type': 'bf16', 'repeat': 'iterations'},
      {'name': 'square', 'gemm': ['s', 's', 's'], 'type': 'bf16', 'repeat': 'iterations'},
      {
       'axes': {'i': 's * s'},
       'repeat': 'iterations',
       'steps': {'polynomial': {'map': ['gram', 'square'], 'to': 'P', 'vector': 2}},
      },
      {
       'name': 'multiply',
       'gemm': ['s', 'l', 's'],
       'type': 'bf16',
       'repeat': 'iterations',
      },
      {
       'axes': {'i': 's * l'},
       'repeat': 'iterations',
       'steps': {'combine': {'map': ['X', 'multiply'], 'to': "X'", 'vector': 1}},
      },
      {
       'steps': {
        'shrink': {'map': 'W', 'to': "W'", 'vector': 1},
        'step': {'map': ["W'", 'X'], 'to': "W''", 'vector': 1},
       },
      },
     ],
    },
    {'as': 'adamw'},
   ],
  },
  'shampoo': {
   'about': "roots of statistics of blocks' rows and columns, steps as long as Adam's",
   'source': 'Gupta et al. 2018 (1802.09568), Algorithm 1; Shi et al. 2023 (2309.06497), §3; facebookresearch/optimizers',
   'settings': {
    'block': {
     'value': 8192,
     'meaning': 'most rows and columns of a block',
     'source': 'facebookresearch/optimizers, README, max_preconditioner_dim',
    },
    'frequency': {
     'value': 100,
     'meaning': 'steps from one computation of the roots to the next',
     'source': 'facebookresearch/optimizers, README, precondition_frequency',
    },
    'iterations': {
     'value': 10,
     'meaning': 'Newton iterations to a root',
     'source': 'assumed: 80 m³ operations for a root of m x m, where 25 to 100 m³ are usual',
    },
   },
   'rules': [
    {
     'kinds': ['vector'],
     'cut': 'block',
     'states': {
      'factors': {'type': 'fp32', 'elements': 'n * n'},
      'roots': {'type': 'fp32', 'elements': 'n * n'},
      'M': {},
      'V': {},
     },
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'G'], 'to': "V''", 'vector': 2},
       },
      },
      {'name': 'statistics', 'gemm': ['n', 'n', 1], 'type': 'fp32'},
      {
       'axes': {'i': 'n * n'},
       'steps': {'accumulate': {'map': ['factors', 'statistics'], 'to': "factors'", 'vector': 2}},
      },
      {'name': 'precondition', 'gemm': ['n', 1, 'n'], 'type': 'fp32'},
      {
       'name': 'roots',
       'gemm': ['n', 'n', 'n'],
       'type': 'fp32',
       'repeat': '3 * iterations',
       'every': 'frequency',
      },
      {
       'steps': {
        'graft': {'map': ['M', 'V'], 'to': 'D', 'vector': 2, 'special': 2},
        'graft-norm': {'reduction': 'D', 'to': 'length', 'over': 'e', 'vector': 1},
        'norm': {'reduction': 'precondition', 'to': 'size', 'over': 'e', 'vector': 1},
        'shrink': {'map': 'W', 'to': "W'", 'vector': 1},
        'step': {'map': ["W'", 'precondition', 'length', 'size'], 'to': "W''", 'vector': 1},
       },
      },
     ],
    },
    {
     'cut': 'block',
     'states': {
      'factors': {'type': 'fp32', 'elements': 'm * m + n * n'},
      'roots': {'type': 'fp32', 'elements': 'm * m + n * n'},
      'M': {},
      'V': {},
     },
     'work': [
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'G'], 'to': "V''", 'vector': 2},
       },
      },
      {
       'name': 'statistics',
       'sides': ['m', 'n'],
       'gemm': ['x', 'x', 'p // x'],
       'type': 'fp32',
      },
      {
       'sides': ['m', 'n'],
       'axes': {'i': 'x * x'},
       'steps': {'accumulate': {'map': ['factors', 'statistics'], 'to': "factors'", 'vector': 2}},
      },
      {
       'name': 'precondition',
       'sides': ['m', 'n'],
       'gemm': ['m', 'n', 'x'],
       'type': 'fp32',
      },
      {
       'name': 'roots',
       'sides': ['m', 'n'],
       'gemm': ['x', 'x', 'x'],
       'type': 'fp32',
       'repeat': '4 * iterations',
       'every': 'frequency',
      },
      {
       'steps': {
        'graft': {'map': ['M', 'V'], 'to': 'D', 'vector': 2, 'special': 2},
        'graft-norm': {'reduction': 'D', 'to': 'length', 'over': 'e', 'vector': 1},
        'norm': {'reduction': 'precondition', 'to': 'size', 'over': 'e', 'vector': 1},
        'shrink': {'map': 'W', 'to': "W'", 'vector': 1},
        'step': {'map': ["W'", 'precondition', 'length', 'size'], 'to': "W''", 'vector': 1},
       },
      },
     ],
    },
   ],
  },
  'soap': {
   'about': "Adam in the eigenbases of Shampoo's statistics, for matrices; AdamW for vectors",
   'source': 'Vyas et al. 2024 (2409.11321), Algorithm 3; nikhilvyas/SOAP, soap.py',
   'settings': {
    'longest': {
     'value': 10000,
     'meaning': 'longest side that has an eigenbasis',
     'source': 'nikhilvyas/SOAP, soap.py, max_precond_dim',
    },
    'frequency': {
     'value': 10,
     'meaning': 'steps from one QR to the next',
     'source': 'nikhilvyas/SOAP, soap.py, precondition_frequency',
    },
   },
   'rules': [
    {'kinds': ['vector'], 'as': 'adamw'},
    {
     'states': {
      'factors': {
       'type': 'fp32',
       'elements': 'min(1, longest // m) * m * m + min(1, longest // n) * n * n',
      },
      'bases': {
       'type': 'fp32',
       'elements': 'min(1, longest // m) * m * m + min(1, longest // n) * n * n',
      },
      'M': {},
      'V': {},
     },
     'work': [
      {
       'name': 'turn',
       'sides': ['m', 'n'],
       'gemm': ['m', 'n', 'x'],
       'type': 'fp32',
       'repeat': '3 * min(1, longest // x)',
      },
      {
       'steps': {
        'mean': {'map': ['M', 'G'], 'to': "M'", 'vector': 2},
        'decay': {'map': 'V', 'to': "V'", 'vector': 1},
        'square': {'map': ["V'", 'turn'], 'to': "V''", 'vector': 2},
       },
      },
      {
       'steps': {
        'root': {'map': 'V', 'to': 'D', 'special': 1},
        'floor': {'map': 'D', 'to': "D'", 'vector': 1},
        'divide': {'map': ['turn', "D'"], 'to': 'U', 'vector': 1, 'special': 1},
       },
      },
      {
       'steps': {
        'step': {'map': ['W', 'turn'], 'to': "W'", 'vector': 1},
        'shrink': {'map': "W'", 'to': "W''", 'vector': 1},
       },
      },
      {
       'name': 'statistics',
       'sides': ['m', 'n'],
       'gemm': ['x', 'x', 'p // x'],
       'type': 'fp32',
       'repeat': 'min(1, longest // x)',
      },
      {
       'sides': ['m', 'n'],
       'axes': {'i': 'x * x'},
       'repeat': 'min(1, longest // x)',
       'steps': {'accumulate': {'map': ['factors', 'statistics'], 'to': "factors'", 'vector': 2}},
      },
      {
       'name': 'power',
       'sides': ['m', 'n'],
       'gemm': ['x', 'x', 'x'],
       'type': 'fp32',
       'repeat': 'min(1, longest // x)',
       'every': 'frequency',
      },
      {
       'name': 'qr',
       'sides': ['m', 'n'],
       'gemm': ['x', 'x', 'ceil(4 * x / 3)'],
       'type': 'fp32',
       'repeat': 'min(1, longest // x)',
       'every': 'frequency',
      },
     ],
    },
   ],
  },
  'k-fac': {
   'about': "each layer's Fisher matrix as a product of two, inverted, for matrices; SGD for the rest",
   'source': 'Martens & Grosse 2015 (1503.05671), §3 and §6; gpauloski/kfac-pytorch',
   'settings': {
    'bias': {
     'value': 1,
     'least': 0,
     'meaning': '1 where layers have a bias, 0 where they have none',
     'source': '1503.05671, §2.1',
    },
    'frequency': {
     'value': 10,
     'meaning': 'steps from one inversion to the next',
     'source': 'gpauloski/kfac-pytorch, examples, kfac-inv-update-steps',
    },
   },
   'rules': [
    {
     'kinds': ['matrix'],
     'states': {
      'factors': {'type': 'fp32', 'elements': '(n + bias) * (n + bias) + m * m'},
      'inverses': {'type': 'fp32', 'elements': '(n + bias) * (n + bias) + m * m'},
     },
     'work': [
      {
       'name': 'statistics',
       'sides': ['n + bias', 'm'],
       'gemm': ['x', 'x', 'tokens'],
       'type': 'fp32',
      },
      {
       'sides': ['n + bias', 'm'],
       'axes': {'i': 'x * x'},
       'steps': {'accumulate': {'map': ['factors', 'statistics'], 'to': "factors'", 'vector': 2}},
      },
      {
       'name': 'inverse',
       'sides': ['n + bias', 'm'],
       'gemm': ['x', 'x', 'ceil(x / 2)'],
       'type': 'fp32',
       'every': 'frequency',
      },
      {
       'name': 'precondition',
       'sides': ['n + bias', 'm'],
       'gemm': ['m', 'n + bias', 'x'],
       'type': 'fp32',
      },
      {'steps': {'step': {'map': ['W', 'precondition'], 'to': "W'", 'vector': 1}}},
     ],
    },
    {'as': 'sgd'},
   ],
  },
 },
}
