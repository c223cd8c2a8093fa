"""Analyses that need many predictions.

whatif, quantities    effects of hardware changes: elasticities, one row for each quantity
why                   explains one predicted time: roofs, floor, which changes would help
trend                 ridge points of devices by year
sweep/                grids of millions of points, written to Parquet
"""
