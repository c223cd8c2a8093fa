"""Predictions against measured runs.

compare      adds predictions to a measured-run table
kinds        kinds of tables (operators, collectives, ...), each with its reader and predictor
noise        errors compared with the noise of repeated measurements
units        detects wrong units of time
profile      a profile of a whole program against the model: coverage and lost time
judging      errors of a predicted table by group, and pass/fail limits
diagnosis    explains errors in sentences
scoreboard   python -m: writes docs/accuracy.md, and docs/accuracy with its long tables
wording      the text of that page, from the template accuracy.md
pages        blocks and tables in documents that commands write
"""
