"""Timed runs of this machine.

Start at `measure`, which checks and times cases. `session` has the stopwatches (`timer`) and
contenders (`contenders`, `rivals`); `microbench` and its probes read what a spec wants, `calibrate`
writes it; `environment`, `journal`, `pulse` and `watch` say under what circumstances.
"""
