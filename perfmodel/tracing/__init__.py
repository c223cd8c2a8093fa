"""A PyTorch module as a graph of our operators: traced on the meta device, no GPU and no weights.

    from perfmodel.tracing import trace
    found = trace(module, (ids,))             # a module on the meta device
    predict_graph(found.graph, load("h100-sxm"))

    module      a user's file as a module on the meta device, and its inputs
    exporting   what torch.export makes of it
    operation   one ATen operator in our terms: a contraction, a row-wise operator, a map; and a
                tensor as it sees it: its storage, its shape, what is broadcast
    registry    ATen operators → operations, one table; `operation` adds to it
    contractions, convolutions, recurrent, maps   its entries
    decomposing what composite operators are made of, and copies of operands before a product
    reading     the nodes of an exported program, views left out, as operations
    fusion      which maps share a kernel, which products are one
    lowering    maps and reductions as problems with exact bytes
    gradients   the backward pass of operations
    trace       all of it together

torch is loaded when a module is traced. Tracing runs the user's code.
"""

from perfmodel.tracing.trace import FUSIONS, Trace, trace

__all__ = ["FUSIONS", "Trace", "trace"]
