"""`python -m perfmodel.cli` is the command line where the package is not installed."""

from perfmodel.__main__ import main

main()
