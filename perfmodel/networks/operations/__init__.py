"""Operations of a network: kernels forward and backward, and the tensors that backward reads.

An `Operation` (operation.py) has inputs, outputs, weights, and the tensors that its backward pass
reads (`saves`). `forward` and `backward` record kernels; `backward` takes gradients of the outputs
and returns gradients of the inputs.

One kind a file: linear.py, attention.py, norm.py, maps.py, experts.py, embedding.py, loss.py,
exchange.py. No other module knows their kernels.
"""
