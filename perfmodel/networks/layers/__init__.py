"""How operations are put together into layers.

    embedding(layer, attention)      tables, their sums, a norm, dropout       ends.py
    head(layer)                      final norm, logits, loss; BERT's heads    ends.py

These functions add operations to a `Layer` (layer.py). attention.py and inner.py build the two
parts of a block.
"""
