"""Images as an encoder reads them: squares of pixels in, groups of them out as tokens.

    patches = Patches(14, side=448, extra=1, tiles=12, thumbnail=True)
    patches.passes(1024, 768, merge=2)          # Passes(tiles=13, rows=1025, tokens=3328)

An image is resized, cut into tiles where the network has them, and each tile into patches. A tile
is one pass of the encoder. Source of the rules: the `image_processing_*.py` of transformers 5.24.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from perfmodel.errors import ProblemError


class Passes(NamedTuple):
    """An image in an encoder."""

    tiles: int = 0
    """Passes of the encoder, one a tile."""
    rows: int = 0
    """Rows of a pass: patches, and what stands before them."""
    tokens: int = 0
    """Tokens of the prompt that the image is."""


@dataclass(frozen=True)
class Patches:
    """How images come to an encoder."""

    size: int
    """Pixels of a patch's side."""
    channels: int = 3
    """Numbers of a pixel: its colours, and those of the frames that a patch spans (Qwen2-VL: 2)."""
    bias: bool = False
    """Whether the product that reads a patch has a bias."""
    extra: int = 0
    """Learned rows before the patches (CLIP's class token), which are no tokens of the prompt."""
    row_tokens: int = 0
    """Tokens of the prompt behind each row of an image's tokens (Pixtral)."""
    side: int = 0
    """Pixels of the side that an image or tile is resized to; 0: an image keeps its size."""
    tiles: int = 1
    """Tiles of an image at most, each of `side`."""
    fit: Literal["aspect", "canvas"] = "aspect"
    """How many tiles are taken: those whose shape is nearest the image's (InternVL), or the
    smallest on which it fits without being made smaller (Llama 4)."""
    thumbnail: bool = False
    """Whether an image of several tiles is also read as a whole."""
    padded: bool = False
    """Whether the sides of an image that keeps its size are padded up to whole groups of patches
    (Pixtral, MoonViT); otherwise they are rounded (Qwen2-VL)."""
    least: int = 0
    """Pixels of an image at least; smaller ones are made larger. 0: no limit."""
    most: int = 0
    """Pixels of an image at most; larger ones are made smaller. 0: no limit."""
    longest: int = 0
    """Pixels of an image's longer side at most. 0: no limit."""

    @property
    def values(self) -> int:
        """Numbers of a patch."""
        return self.size**2 * self.channels

    def passes(self, width: int, height: int, merge: int = 1) -> Passes:
        """Passes over an image of `width` × `height` pixels, of which `merge` × `merge` patches are
        a token."""
        tiles, columns, rows = 1, self.side // self.size, self.side // self.size
        if self.side:
            tiles = math.prod(self._grid(width, height))
            tiles += self.thumbnail and tiles > 1
        else:
            columns, rows = self._own_size(width, height, merge)
        tokens = (columns // merge + self.row_tokens) * (rows // merge)
        return Passes(tiles, columns * rows + self.extra, tiles * tokens)

    def _own_size(self, width: int, height: int, merge: int) -> tuple[int, int]:
        """Patches across and down of an image that keeps its size as far as limits allow."""
        unit = self.size * merge
        sides = (width, height)
        pixels = math.prod(max(round(side / unit), 1) * unit for side in sides)
        scale = 1.0
        rounding: Callable[[float], int] = math.ceil if self.padded else round
        if self.longest:
            scale = min(scale, self.longest / max(sides))
        if self.most and pixels > self.most:
            scale = min(scale, math.sqrt(self.most / math.prod(sides)))
            rounding = math.ceil if self.padded else math.floor
        elif self.least and pixels < self.least:
            scale, rounding = math.sqrt(self.least / math.prod(sides)), math.ceil
        if self.padded:
            sides = (int(width * scale + 1e-9), int(height * scale + 1e-9))
            scale = 1.0
        columns, rows = (max(rounding(side * scale / unit), 1) * merge for side in sides)
        return columns, rows

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Tiles across and down."""
        most = self.tiles
        grids = [(i, j) for i, j in product(range(1, most + 1), repeat=2) if i * j <= most]
        if self.fit == "canvas":
            scales = {(i, j): min(i * self.side / width, j * self.side / height) for i, j in grids}
            fits = [scale for scale in scales.values() if scale >= 1.0]
            best = min(fits) if fits else max(scales.values())
            return min((g for g in grids if scales[g] == best), key=math.prod)
        gaps = {(i, j): abs(width / height - i / j) for i, j in grids}
        near = sorted((g for g in grids if gaps[g] == min(gaps.values())), key=math.prod)
        halves = [g for g in near if width * height > 0.5 * self.side**2 * math.prod(g)]
        return (halves or near[:1])[-1]


@dataclass(frozen=True)
class Projector:
    """Products that make an encoder's rows the tokens of another network."""

    widths: tuple[int, ...]
    """Columns of each product's output, in order; an activation stands between two."""
    merge: int = 1
    """Side of the square of patches that become one token."""
    pooled: bool = False
    """Whether they are averaged (Gemma 3); otherwise they stand side by side."""
    norm: Literal["none", "layernorm", "rmsnorm"] = "none"
    """The norm before the products."""
    norm_joined: bool = False
    """Whether it is of the rows side by side; otherwise of each."""
    bias: bool = True
    """Whether the products have biases."""
    plain: int = 0
    """Products, from the first on, that no activation follows (Mistral 3: one)."""
    activation: str = "gelu"
    """One of `network.ACTIVATIONS`."""
    repeat: int = 1
    """Equal projectors, each of which makes tokens for another layer (Qwen3-VL)."""


def image_size(text: str) -> tuple[int, int]:
    """Width and height in pixels, from a text such as 1024x768. Raises `ProblemError`."""
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() and 0 < int(side) <= 2**16 for side in sides):
        raise ProblemError(f"image size {text}: give width and height in pixels, as 1024x768")
    return int(sides[0]), int(sides[1])
