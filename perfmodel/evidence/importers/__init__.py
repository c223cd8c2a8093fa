"""Readers of profilers' files: launches with metrics in SI units, one module for each format."""
