"""Machines whose memory is on the chip: what they hold, how many it takes, how long a token takes.

holding.py counts devices, watts and money of any device for a network's weights and cache;
latency.py bounds a decoding step where the network lies in SRAM, streaming.py where its weights
come from outside.
"""
