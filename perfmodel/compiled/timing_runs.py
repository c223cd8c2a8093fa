"""Compiled from timing/runs.yaml by `python -m perfmodel.compiled`."""

HASH = "deec2d0759630253"
DOCUMENT = {
 'version': 1,
 'values': {
  'warm': {
   'unit': '1',
   'meaning': 'share of the inputs that fit in L2 and are found there, left by the run before',
  },
  'rotates': {
   'unit': 'names',
   'meaning': 'operators whose weights take turns with copies, so that each is found again after a round of all',
  },
  'copies': {'unit': '1', 'meaning': 'copies of the weights of those operators, the first included'},
  'repeats': {
   'unit': 'yes or no',
   'meaning': 'calls of the same kernel on the same memory follow each other: each finds what the one before swept, and writes over what it wrote',
  },
  'activity': {
   'unit': '1',
   'meaning': 'switching activity of the data over that of random numbers: a factor of energy',
  },
  'one_at_a_time': {
   'unit': 'yes or no',
   'meaning': 'the host leaves the board idle between calls, so that a power limit lags',
  },
  'starts': {
   'unit': 's',
   'meaning': 'what passes before the first instruction of a call, by operator',
  },
  'by_clock': {
   'unit': 'names',
   'meaning': "operators whose starts are the device's own cycles, in seconds at 1.75 GHz: its front end goes from kernel to kernel by itself",
  },
  'calls': {
   'unit': 's',
   'meaning': 'host time of a whole call, by operator, where what comes after its start goes on beside the kernel',
  },
  'calls_as': {
   'unit': 'name',
   'meaning': 'harness whose element-wise maps say how long the host takes for a plain call, where several calls make up an operator and the device may have to wait for them',
  },
  'library_kernels': {
   'unit': 'yes or no',
   'meaning': 'kernels that a library launches around its own are in the time',
  },
  'library_start': {
   'unit': 'yes or no',
   'meaning': 'what a library does before its kernel is in the time (names.yaml, callers)',
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
     'value': 2.84e-06,
     'source': 'the 272 smallest problems timed so, by the median of 3 operators',
    },
    'gemm': {'value': 2.84e-06, 'source': 'the 53 smallest problems timed so'},
    'attention': {'value': 3.93e-06, 'source': 'the 171 smallest problems timed so'},
    'rowwise': {
     'value': 1.56e-06,
     'source': 'the 48 smallest problems timed so, by the median of 1 operators',
    },
    'quantise': {'value': 1.56e-06, 'source': 'the 48 smallest problems timed so'},
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
     'value': 2.81e-05,
     'source': 'the 633 smallest problems timed so, by the median of 6 operators',
    },
    'gemm': {'value': 4.51e-05, 'source': 'the 90 smallest problems timed so'},
    'bmm': {'value': 2.44e-05, 'source': 'the 179 smallest problems timed so'},
    'softmax': {'value': 3.17e-05, 'source': 'the 68 smallest problems timed so'},
    'layernorm': {'value': 3.95e-05, 'source': 'the 69 smallest problems timed so'},
    'pointwise': {'value': 1.82e-05, 'source': 'the 124 smallest problems timed so'},
    'scalar': {'value': 2.1e-05, 'source': 'the 103 smallest problems timed so'},
    'rowwise': {
     'value': 2.64e-05,
     'source': 'the 364 smallest problems timed so, by the median of 4 operators',
    },
   },
   'calls': {
    'any': {
     'value': 3.98e-05,
     'source': 'the 633 smallest problems timed so, by the median of 6 operators',
    },
    'gemm': {'value': 6.17e-05, 'source': 'the 90 smallest problems timed so'},
    'bmm': {'value': 4.24e-05, 'source': 'the 179 smallest problems timed so'},
    'softmax': {'value': 3.73e-05, 'source': 'the 68 smallest problems timed so'},
    'layernorm': {'value': 4.83e-05, 'source': 'the 69 smallest problems timed so'},
    'pointwise': {'value': 2.95e-05, 'source': 'the 124 smallest problems timed so'},
    'scalar': {'value': 3.48e-05, 'source': 'the 103 smallest problems timed so'},
    'rowwise': {
     'value': 3.6e-05,
     'source': 'the 364 smallest problems timed so, by the median of 4 operators',
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
     'value': 3.76e-05,
     'source': 'the 12 smallest problems timed so, by the median of 4 operators',
    },
    'gemm': {'value': 2.75e-05, 'source': 'the 3 smallest problems timed so'},
    'softmax': {'value': 1.13e-05, 'source': 'the 3 smallest problems timed so'},
    'layernorm': {'value': 4.84e-05, 'source': 'the 3 smallest problems timed so'},
    'pointwise': {'value': 4.77e-05, 'source': 'the 3 smallest problems timed so'},
    'rowwise': {
     'value': 4.77e-05,
     'source': 'the 9 smallest problems timed so, by the median of 3 operators',
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
     'value': 2.77e-06,
     'source': 'the 92 smallest problems timed so, by the median of 3 operators',
    },
    'gemm': {
     'value': 4.5918e-06,
     'source': 'least squares over the published runs under this harness',
    },
    'pointwise': {'value': 2.47e-06, 'source': 'the 50 smallest problems timed so'},
    'layernorm': {'value': 3.95e-06, 'source': 'the 7 smallest problems timed so'},
    'rmsnorm': {'value': 2.77e-06, 'source': 'the 35 smallest problems timed so'},
    'rowwise': {
     'value': 2.77e-06,
     'source': 'the 92 smallest problems timed so, by the median of 3 operators',
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
