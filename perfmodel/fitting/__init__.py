"""From measured runs to constants, and how good they are on runs left out.

perfmodel.fitting.fit    python -m: constants, ranges and starts of a measured-run table
estimation               the least-squares fit from priors
fitted                   what a fit leaves behind: values, intervals, what was identified
heldout                  fitted again with a device, source or implementation left out
collectives              python -m: the same for collectives over links
starts                   what calls take before their kernels run, read off short runs
"""
