"""Embedding tables of recommenders: how popular rows are, what caches hold, where tables lie.

popularity.py has Zipf's law and the hit rates of caches, bag.py what look-ups move and how long
they take on one device, placement.py host memory, device memory with a cache, and shards beside
each other, dlrm.py a whole recommender.
"""
