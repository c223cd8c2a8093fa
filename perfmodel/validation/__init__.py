"""Predictions against measured runs.

compare      a measured-run table with predictions beside it, and errors by group
diagnosis    where the error is, in a sentence
scoreboard   python -m: all of docs/accuracy.md
"""
