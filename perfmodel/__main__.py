"""`python -m perfmodel` and the installed script: the command line.

An interrupt while modules are still being imported ends in the same line as a later one.
"""

import sys


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
