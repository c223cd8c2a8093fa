"""`python -m perfmodel` and the installed script: the command line.

An interrupt while modules are still being imported ends in the same line as a later one.
"""

import gc
import sys

gc.set_threshold(100_000)  # at start nothing is garbage, and looking for it takes 10 ms


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    try:
        from perfmodel.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("perfmodel: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
