"""Sound as an encoder reads it: a window of a spectrogram through two convolutions."""

from __future__ import annotations

from dataclasses import dataclass

TAPS = 3
"""Frames that a row of each convolution is made of."""


@dataclass(frozen=True)
class Frames:
    """Frames of a spectrogram through two convolutions of three taps, the second of which keeps
    every other row (Whisper, 2212.04356, section 2.2)."""

    mels: int
    """Numbers of a frame."""
    positions: int = 1500
    """Rows of a window of sound (30 s); a shorter one is padded up to it."""
