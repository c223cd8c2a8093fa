"""What libraries' kernels do, as typed facts: one YAML file a library, one entry a kernel.

    facts, rules    the dataclasses: AttentionFacts, GemmFacts, RowFacts; units, meanings
    *.yaml          the facts of a library's kernels, each with its source
    names.yaml      names of kernels in tables and frameworks: the only file of patterns
    soundness       checks of facts beyond their types
    files           all files, and those of other packages (entry point perfmodel.libraries)
    naming          from names to kernels, and how a framework calls them
    dispatch        which kernel runs a problem on a device: start here
    schema          the JSON Schema of a file

Most sources name the library's file but were written from memory of it; those that were opened say
so. Which variant a library ran was chosen by looking at published timings, so held-out errors are
optimistic for these kernels. docs/libraries.md shows how to add a library, and how a package of
one's own brings one.
"""

from perfmodel.timing.libraries.dispatch import resolve, unmet, usual
from perfmodel.timing.libraries.facts import (
    AttentionFacts,
    Caller,
    ChainFacts,
    GemmFacts,
    KernelFacts,
    MatrixFacts,
    RowFacts,
)
from perfmodel.timing.libraries.files import kernel_facts, kernels
from perfmodel.timing.libraries.naming import (
    asked_for,
    caller_of,
    framework_of,
    implementations,
    is_known,
    spelled,
)

__all__ = [
    "AttentionFacts",
    "Caller",
    "ChainFacts",
    "GemmFacts",
    "KernelFacts",
    "MatrixFacts",
    "RowFacts",
    "asked_for",
    "caller_of",
    "framework_of",
    "implementations",
    "is_known",
    "kernel_facts",
    "kernels",
    "resolve",
    "spelled",
    "unmet",
    "usual",
]
