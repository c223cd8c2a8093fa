"""Time limit of each stage in seconds; the last stage takes what is left."""

BUDGETS_S = {
    "plan": 60.0,
    "compile": 150.0,
    "correctness": 90.0,
    "proof": 480.0,
    "readings": 150.0,
    "counters": 240.0,
}
