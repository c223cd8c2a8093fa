"""Compiled from timing/runs.yaml by `python -m perfmodel.compiled`."""

HASH = "03c328720b4a6051"
DOCUMENT = {
 'version': 1,
 'values': {
  'warm': {
   'unit': '1',
   'meaning': 'share of the inputs that fit in L2 and that the run before left there',
  },
  'rotates': {
   'unit': 'names',
   'meaning': 'operators whose weights have copies that take turns: each copy is used again after all others',
  },
  'copies': {'unit': '1', 'meaning': 'copies of the weights of those operators, the first included'},
  'repeats': {
   'unit': 'yes or no',
   'meaning': 'calls of the same kernel on the same memory follow each other: each finds the tensors of the call before in the caches',
  },
  'activity': {
   'unit': '1',
   'meaning': 'switching activity of the data over that of random numbers: a factor of energy',
  },
  'one_at_a_time': {
   'unit': 'yes or no',
   'meaning': 'the host waits for each call, so that the board idles between calls and the power limit responds late',
  },
  'starts': {'unit': 's', 'meaning': 'time before the first instruction of a call, by operator'},
  'by_clock': {
   'unit': 'names',
   'meaning': 'operators whose starts are device cycles, in seconds at 1.75 GHz: the device goes from kernel to kernel without the host',
  },
  'calls': {
   'unit': 's',
   'meaning': 'host time of a whole call, by operator, where the host works in parallel with the kernel after the start',
  },
  'calls_as': {
   'unit': 'name',
   'meaning': 'harness whose element-wise maps give the host time of a plain call, where several calls make up an operator and the device may have to wait for them',
  },
  'library_kernels': {
   'unit': 'yes or no',
   'meaning': 'the time includes kernels that a library launches around its own',
  },
  'library_start': {
   'unit': 'yes or no',
   'meaning': 'the time includes what a library does before its kernel (names.yaml, callers)',
  },
 },
 'among': {
  'bmm': 'gemm',
  'scalar': 'pointwise',
  'softmax': 'rowwise',
  'layernorm': 'rowwise',
  'rmsnorm': 'rowwise',
  'pointwise': 'rowwise',
  'quantise': 'rowwise',
 },
 'scalar_maps': {
  'names': ['add_scalar', 'mul_scalar', 'div_scalar', 'pow_scalar', 'relu'],
  'source': 'ATen: wrapped_scalar_tensor, Activation.cpp',
 },
 'harnesses': {
  'kernel': {
   'about': 'device time alone, without any overhead',
   'starts': {
    'any': {
     'value': 1.5e-06,
     'source': "round figure for what a kernel's own time stamps hold before its first instruction",
    },
   },
   'library_kernels': {'value': False, 'source': 'one kernel is timed'},
   'library_start': {'value': False, 'source': 'one kernel is timed'},
  },
  'cuda_graph': {
   'about': 'repetitions captured in one graph',
   'warm': {'value': 1.0, 'source': 'no L2 flush between repetitions, whose inputs are the same'},
   'rotates': {
    'value': ['gemm'],
    'source': "graph captures of serving frameworks go round several copies of a product's weights (aiconfigurator, collector/vllm/collect_gemm.py)",
   },
   'copies': {
    'value': 6.0,
    'source': 'outside_loop_count in collect_gemm.py of vLLM and SGLang (aiconfigurator, collector/)',
   },
   'repeats': {
    'value': True,
    'source': 'a captured call writes to the same memory in each repetition',
   },
   'by_clock': {
    'value': ['gemm', 'rowwise'],
    'source': 'products and quantisation are captured five or six times in one graph, whose kernels follow each other without the host, attention once (aiconfigurator, collector/)',
   },
   'activity': {
    'value': 0.7,
    'source': 'prepared inputs, small numbers or zeros: zeros run 15 % faster than random data (A100 8192^3)',
   },
   'starts': {
    'any': {
     'value': 2.38e-06,
     'source': 'the 893 smallest problems timed so, by the median of 3 operators',
    },
    'gemm': {'value': 2.38e-06, 'source': 'the 233 smallest problems timed so'},
    'attention': {'value': 2.87e-06, 'source': 'the 570 smallest problems timed so'},
    'rowwise': {
     'value': 1.41e-06,
     'source': 'the 90 smallest problems timed so, by the median of 1 operators',
    },
    'quantise': {'value': 1.41e-06, 'source': 'the 90 smallest problems timed so'},
   },
  },
  'cuda_events_eager': {
   'about': 'events around eager calls of the framework',
   'warm': {'value': 1.0, 'source': 'no L2 flush between repetitions, whose inputs are the same'},
   'one_at_a_time': {'value': True, 'source': 'each call is awaited before the next'},
   'repeats': {
    'value': True,
    'source': 'a caching allocator hands out the memory that the call before gave back',
   },
   'starts': {
    'any': {
     'value': 2.61e-05,
     'source': 'the 426 smallest problems timed so, by the median of 6 operators',
    },
    'gemm': {'value': 4.27e-05, 'source': 'the 71 smallest problems timed so'},
    'bmm': {'value': 2.29e-05, 'source': 'the 117 smallest problems timed so'},
    'softmax': {'value': 2.94e-05, 'source': 'the 44 smallest problems timed so'},
    'layernorm': {'value': 4.31e-05, 'source': 'the 49 smallest problems timed so'},
    'pointwise': {'value': 1.74e-05, 'source': 'the 80 smallest problems timed so'},
    'scalar': {'value': 2.02e-05, 'source': 'the 65 smallest problems timed so'},
    'rowwise': {
     'value': 2.48e-05,
     'source': 'the 238 smallest problems timed so, by the median of 4 operators',
    },
   },
   'calls': {
    'any': {
     'value': 4e-05,
     'source': 'the 426 smallest problems timed so, by the median of 6 operators',
    },
    'gemm': {'value': 6.29e-05, 'source': 'the 71 smallest problems timed so'},
    'bmm': {'value': 4.28e-05, 'source': 'the 117 smallest problems timed so'},
    'softmax': {'value': 3.72e-05, 'source': 'the 44 smallest problems timed so'},
    'layernorm': {'value': 4.79e-05, 'source': 'the 49 smallest problems timed so'},
    'pointwise': {'value': 3.02e-05, 'source': 'the 80 smallest problems timed so'},
    'scalar': {'value': 3.47e-05, 'source': 'the 65 smallest problems timed so'},
    'rowwise': {
     'value': 3.6e-05,
     'source': 'the 238 smallest problems timed so, by the median of 4 operators',
    },
   },
   'calls_as': {
    'value': 'cuda_events_eager',
    'source': 'there, maps of small tensors are timed that are nothing but calls',
   },
  },
  'wall_clock': {
   'about': "the host's clock around eager calls",
   'warm': {'value': 1.0, 'source': 'no L2 flush between repetitions, whose inputs are the same'},
   'activity': {'value': 0.7, 'source': 'as cuda_graph'},
   'one_at_a_time': {'value': True, 'source': 'each call is awaited before the next'},
   'repeats': {
    'value': True,
    'source': 'a caching allocator hands out the memory that the call before gave back',
   },
   'starts': {
    'any': {
     'value': 3.75e-05,
     'source': 'the 15 smallest problems timed so, by the median of 4 operators',
    },
    'gemm': {'value': 2.79e-05, 'source': 'the 3 smallest problems timed so'},
    'softmax': {'value': 1.14e-05, 'source': 'the 3 smallest problems timed so'},
    'layernorm': {'value': 4.71e-05, 'source': 'the 3 smallest problems timed so'},
    'pointwise': {'value': 4.78e-05, 'source': 'the 6 smallest problems timed so'},
    'rowwise': {
     'value': 4.71e-05,
     'source': 'the 12 smallest problems timed so, by the median of 3 operators',
    },
   },
   'calls_as': {
    'value': 'cuda_events_eager',
    'source': 'there, maps of small tensors are timed that are nothing but calls',
   },
  },
  'profiler': {
   'about': 'each kernel as a profiler times it',
   'warm': {'value': 1.0, 'source': 'no L2 flush between repetitions, whose inputs are the same'},
   'starts': {
    'any': {
     'value': 2.57e-06,
     'source': 'the 102 smallest problems timed so, by the median of 3 operators',
    },
    'gemm': {'value': 6.48e-06, 'source': 'the 60 smallest problems timed so'},
    'pointwise': {'value': 1.48e-06, 'source': 'the 54 smallest problems timed so'},
    'layernorm': {'value': 3.12e-06, 'source': 'the 12 smallest problems timed so'},
    'rmsnorm': {'value': 2.57e-06, 'source': 'the 36 smallest problems timed so'},
    'rowwise': {
     'value': 2.57e-06,
     'source': 'the 102 smallest problems timed so, by the median of 3 operators',
    },
   },
  },
  'paper': {
   'about': 'as papers time: many calls in a row, their mean',
   'starts': {
    'any': {
     'value': 5.5864e-06,
     'source': 'least squares over the published runs under this harness',
    },
   },
   'calls_as': {
    'value': 'cuda_events_eager',
    'source': 'there, maps of small tensors are timed that are nothing but calls',
   },
  },
  'do_bench': {
   'about': "Triton's do_bench",
   'starts': {
    'any': {
     'value': 4e-06,
     'source': 'round figure: events around each call, the L2 cleared before it',
    },
    'gemm': {
     'value': 5e-06,
     'source': 'round figure: events around each call, the L2 cleared before it',
    },
    'attention': {
     'value': 6e-06,
     'source': 'round figure: events around each call, the L2 cleared before it',
    },
   },
   'calls_as': {
    'value': 'cuda_events_eager',
    'source': 'there, maps of small tensors are timed that are nothing but calls',
   },
  },
  'unknown': {
   'about': 'nobody said: device time, in a wider range',
   'starts': {'any': {'value': 1.5e-06, 'source': 'as kernel'}},
   'library_start': {'value': False, 'source': 'as kernel'},
  },
 },
}
