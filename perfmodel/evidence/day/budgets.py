"""Time limits in seconds, of each stage and of one case; the last stage takes what is left."""

BUDGETS_S = {
    "plan": 60.0,
    "compile": 150.0,
    "correctness": 90.0,
    "proof": 480.0,
    "readings": 150.0,
    "counters": 240.0,
}

SILENCES_S = {"correctness": 20.0}
"""A case that runs longer than this is taken to hang; the small ones of the checks take a second.
"""
SILENCE_S = 90.0
"""The same for every other stage; its longest cases take a few seconds."""
