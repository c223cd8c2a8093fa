"""Machines with on-chip memory: what they hold, how many are needed, and the time of a token.

holding.py counts devices, watts and money of any device for a network's weights and cache.
latency.py bounds a decode step with the network in SRAM, or with weights from outside.
"""
