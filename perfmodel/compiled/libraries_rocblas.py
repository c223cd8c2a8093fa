"""Compiled from libraries/rocblas.yaml by `python -m perfmodel.compiled`."""

HASH = "9c43213ffcb02cba"
DOCUMENT = {
 'library': 'rocBLAS and hipBLASLt, which stand for the libraries of other makes',
 'kernels': {
  'blas': {
   'operator': 'gemm',
   'formats': ['fp16', 'bf16', 'tf32', 'fp8', 'int8', 'nvfp4', 'mxfp4'],
   'instruction': 'native',
   'overlap': 'pipelined',
   'tiles': [
    [256, 128, 256],
    [128, 256, 256],
    [128, 128, 256],
    [256, 64, 256],
    [64, 256, 256],
    [128, 64, 128],
    [64, 128, 128],
    [64, 64, 128],
    [128, 32, 128],
    [32, 128, 128],
    [64, 32, 64],
    [32, 64, 64],
    [16, 64, 64],
    [64, 16, 64],
   ],
   'splits': [1, 2, 3, 4, 6, 8, 12, 16],
   'source': "hipBLASLt and Tensile solution names: macro tiles from 16x16 to 256x256, with global split-U; stands for other makes' libraries",
  },
  'blas-fp32': {
   'operator': 'gemm',
   'formats': ['fp32', 'fp64'],
   'instruction': 'vector',
   'overlap': 'pipelined',
   'tiles': [
    [128, 128, 256],
    [128, 64, 256],
    [64, 128, 256],
    [64, 64, 256],
    [64, 32, 128],
    [32, 64, 128],
    [32, 32, 64],
   ],
   'splits': [1, 2, 3, 4, 6, 8, 12, 16],
   'source': "rocBLAS Tensile solution names: macro tiles from 32x32 to 128x128, with global split-U; stands for other makes' libraries",
  },
 },
}
