"""Embedding tables of recommenders: popularity of rows, hit rates of caches, placement of tables.

popularity.py has Zipf's law and the hit rates of caches, bag.py the traffic and time of look-ups on
one device. placement.py has host memory, device memory with a cache, and sharded tables; dlrm.py a
whole recommender.
"""
