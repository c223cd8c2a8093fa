"""Where the tests find things: the repository, what lies beside the tests, and measured data."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared"
"""Material that is not part of the repository; what needs it is skipped where it is absent."""
