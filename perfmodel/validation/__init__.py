"""Predictions against measured runs.

compare      a measured-run table with predictions beside it
kinds        kinds of tables: operators, collectives; each with its reader and predictor
noise, units errors beside the noise of measurements, and a unit that is not the one said
profile      a profile of a whole program: coverage, and where time is lost
judging      errors of a predicted table by group, and a gate
diagnosis    where the error is, in a sentence
scoreboard   python -m: all of docs/accuracy.md
wording      the words of that page, from the template accuracy.md
pages        blocks, headings and tables of documents that commands write
"""
