"""Fits constants to measured runs, and tests them on runs left out of the fit.

perfmodel.fitting.fit    python -m: constants, ranges and starts of a measured-run table
estimation               the least-squares fit from priors
fitted                   the result of a fit: values, intervals, whether identified
heldout                  fits again with a device, source or implementation left out
collectives              python -m: the same for collectives over links
starts                   times of calls before their kernels start, from short runs
"""
