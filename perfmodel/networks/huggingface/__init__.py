"""A Hugging Face config.json as a network: sizes, layer by layer, and what was not understood.

    found = read("config.json")
    found.network, found.notes

Keys are read by family, since the same key means different things and a missing one has a family's
default: declared.yaml says each family's fields as expressions of keys (declared.py). Nothing is
guessed: keys that nobody reads are listed, as are defaults that were taken, and a `model_type` that
is not known is an error unless the user names a family.
"""

from perfmodel.networks.huggingface.declared import FAMILIES
from perfmodel.networks.huggingface.families import Imported, read

__all__ = ["FAMILIES", "Imported", "read"]
