"""Questions that take many predictions.

whatif, quantities    what a faster part would bring: elasticities, a quantity a row
why                   what decides one predicted time: roofs, floor, what would help
trend                 ridge points of devices by year
sweep/                grids of millions into Parquet
"""
