"""Questions that take many predictions.

whatif, quantities    what a faster part would bring: elasticities, a quantity a row
trend                 ridge points over generations of devices
sweep/                grids of millions into Parquet
"""
