"""Predictions against measured runs.

compare      a measured-run table with predictions beside it
kinds        kinds of tables: operators, collectives; each with its reader and predictor
judging      errors of a predicted table by group, and a gate
diagnosis    where the error is, in a sentence
scoreboard   python -m: all of docs/accuracy.md
"""
