"""Inference passes as serving engines run them: CUDA graphs, 16 bits, logits only where needed."""

from __future__ import annotations

from perfmodel.networks import stack
from perfmodel.networks.setting import Setting


def step(batch: int, context: int, *, ends: bool = True) -> Setting:
    """A decode step of `batch` sequences of `context` tokens, the new one included. Without `ends`
    it has only the layers, no embedding and no head."""
    return _pass(batch, 1, context - 1, ends)


def prompt(batch: int, tokens: int, *, ends: bool = True) -> Setting:
    """A prefill pass over `tokens` tokens of each of `batch` prompts."""
    return _pass(batch, tokens, 0, ends)


def _pass(batch: int, seq: int, past: int, ends: bool) -> Setting:
    fused = stack.load("captured")
    return Setting(batch, seq, past, dtype="fp16", stack=fused, logits="last", ends=ends)
