"""How libraries cut the keys of attention into slices, so that few queries fill a device.

    smallest    FlashAttention-2: the smallest number that fills the last wave nearly best
    even        FlashAttention-3: an even share of all key tiles for every unit
    waves       FlashInfer, TensorRT-LLM, SGLang: as many slices as fill whole waves
    segments    vLLM's Triton kernel: a fixed number for small grids
    heads       FlashAttention-1: a head's queries, or its keys in the backward pass

One rule a file: its source, its facts as a library's YAML states them, and its `number` of slices.
Kernels without a rule take the number that is fastest (`timing.splitkv`).
"""

from typing import Annotated

from perfmodel.entries import Tagged
from perfmodel.timing.cuts.even import EvenCut
from perfmodel.timing.cuts.heads import HeadsCut
from perfmodel.timing.cuts.segments import SegmentsCut
from perfmodel.timing.cuts.smallest import SmallestCut
from perfmodel.timing.cuts.waves import WavesCut

Cut = Annotated[SmallestCut | EvenCut | WavesCut | SegmentsCut | HeadsCut, Tagged("rule")]
"""A rule of cutting."""

__all__ = ["Cut", "EvenCut", "HeadsCut", "SegmentsCut", "SmallestCut", "WavesCut"]
