"""What measured runs teach beyond the model: a correction for each framework, family, architecture.

    time = max(floor, (start + factor · model) · exp(residual of the nearest runs))

Start and factor are those of a group (`groups`). The residual is a Gaussian process over sizes,
operations and bytes (`regression`). A correction holds for the kernels, the framework and the
architecture that it was learned from, and for no other. `active` says which file is used;
`perfmodel.validation.learn` makes one from a table of runs.
"""
