"""Operations of a network: kernels forward and backward, and what each backward reads.

An `Operation` (operation.py) knows its inputs, outputs, weights and the tensors that its backward
pass reads (`saves`). `forward` and `backward` record kernels; `backward` turns gradients of the
outputs into those of the inputs. One kind a file: linear.py, attention.py, norm.py, maps.py,
experts.py, embedding.py, loss.py, exchange.py. Nothing else in the package knows their kernels.
"""
