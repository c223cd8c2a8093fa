"""How operations are put together into layers.

    embedding(layer, attention)      tables, their sums, a norm, dropout       ends.py
    block(layer, of)                 attention and inner layer, residuals      block.py
    head(layer)                      final norm, logits, loss; BERT's heads    ends.py

A `Layer` (layer.py) is what they add operations to; attention.py and inner.py have the two parts of
a block.
"""
