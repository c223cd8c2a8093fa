"""Operations of a network: their kernels forward, from which their kernels backward follow.

An `Operation` (operation.py) has inputs, outputs and weights; `forward` records kernels.
backward.py derives the backward pass from them, by one rule a kind of kernel. An operation says
it itself only where a library or a framework launches something else: norms and rotary positions
by plain operators, Megatron's loss, gathers, gradients of biases and their sums in fp32, states.

One kind a file: linear.py, attention.py, norm.py, maps.py, experts.py, embedding.py, loss.py,
adapter.py, states.py, exchange.py. No other module knows their kernels.
"""
