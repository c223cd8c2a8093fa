"""Recorded convolutions as implicit products.

A convolution joins a fine image (the input; of a transposed one the result) and a coarse one, with
weights [coarse channels, fine channels of a group, taps...]. In each direction it multiplies and
adds once for each coarse pixel, tap and pair of channels of a group (Dumoulin & Visin 2016,
1603.07285; Chetlur et al. 2014, 1410.0759):

    coarse from fine    m = coarse pixels, n = coarse channels, k = fine channels x taps
    fine from coarse    m = fine pixels, n = fine channels, k = what is left of the products
    weights             m = fine channels x taps, n = coarse channels, k = coarse pixels

each for a group; groups are the batch. Pixels that several taps read come from memory once, and
then from the L2. With one channel a group (depthwise) no matrix is left: images and weights pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.algorithms import Matmul, Problem
from perfmodel.profile.streams import Streamed, stream
from perfmodel.profile.timeline import Recorded
from perfmodel.timing.reuse import Reuse, Reuses

Work = tuple[Problem, Reuses | None]
"""A problem, and what of its inputs the caches hold."""


@dataclass(frozen=True)
class Convolution:
    """A convolution in either direction; sizes are of the whole batch and of all groups."""

    fine: int
    """Elements of the fine image."""
    coarse: int
    """Elements of the coarse image."""
    fine_channels: int
    """Channels of the fine image."""
    coarse_channels: int
    """Channels of the coarse image."""
    taps: int
    """Taps of all dimensions."""
    groups: int
    """Groups of channels."""
    dtype: str
    """Type of images and weights."""

    @property
    def weights(self) -> int:
        """Elements of the weights."""
        return self.coarse_channels * (self.fine_channels // self.groups) * self.taps

    @property
    def coarse_pixels(self) -> int:
        """Pixels of the coarse image."""
        return self.coarse // self.coarse_channels

    def to_coarse(self) -> Work:
        """The coarse image from the fine one."""
        k = self.fine_channels // self.groups * self.taps
        sizes = self.coarse_pixels, self.coarse_channels, k
        return self._product(*sizes, self.fine, self.weights, self.coarse)

    def to_fine(self) -> Work:
        """The fine image from the coarse one."""
        pixels = self.fine // self.fine_channels
        products = self.coarse_pixels * self.coarse_channels * self.taps
        k = max(round(products / (self.groups * pixels)), 1)
        return self._product(pixels, self.fine_channels, k, self.coarse, self.weights, self.fine)

    def to_weights(self) -> Work:
        """The gradient of the weights."""
        rows = self.fine_channels // self.groups * self.taps
        sizes = rows, self.coarse_channels, self.coarse_pixels
        return self._product(*sizes, self.fine, self.coarse, self.weights)

    def _product(self, m: int, channels: int, k: int, left: int, right: int, output: int) -> Work:
        """The product of a direction, with the elements of its operands and of its result."""
        if self.groups > 1 and self.coarse_channels == self.groups:
            reads = [Streamed(left, self.dtype), Streamed(right, self.dtype)]
            copy = stream("conv", reads, [Streamed(output, self.dtype)])
            assert copy is not None
            return copy, None
        share = max(1.0 - left / (m * k * self.groups), 0.0)
        product = Matmul(m, channels // self.groups, k, self.groups, self.dtype)
        return product, {"A": (Reuse(share, 0.0),)}


def forward(recorded: Recorded, dtype: str, entry: Mapping[str, Any]) -> list[Work]:
    """The convolution of an image with weights; raises `ValueError` for another form."""
    image, weight = _images(recorded.extents(0), recorded.extents(1))
    groups = image[1] if entry.get("is_depthwise") else _integer(recorded, entry["groups"])
    is_transposed = entry.get("is_transposed") or _is_true(recorded, entry.get("transposed"))
    space = len(weight) - 2
    stride, padding, dilation, output_padding = (
        _per_dimension(recorded, entry.get(name), default, space)
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    )
    spans = [dilation[i] * (weight[2 + i] - 1) + 1 for i in range(space)]
    if is_transposed:
        pixels = [
            (n - 1) * stride[i] - 2 * padding[i] + spans[i] + output_padding[i]
            for i, n in enumerate(image[2:])
        ]
    else:
        pixels = [(n + 2 * padding[i] - spans[i]) // stride[i] + 1 for i, n in enumerate(image[2:])]
    channels = weight[1] * groups if is_transposed else weight[0]
    output = (image[0], channels, *pixels)
    fine, coarse = (output, image) if is_transposed else (image, output)
    conv = _convolution(fine, coarse, weight, groups, dtype)
    return [conv.to_fine() if is_transposed else conv.to_coarse()]


def backward(recorded: Recorded, dtype: str, entry: Mapping[str, Any]) -> list[Work]:
    """The gradients of image and weights that were asked for; raises `ValueError` likewise."""
    image, weight = _images(recorded.extents(1), recorded.extents(2))
    gradient = (image[0], *recorded.extents(0)[-(len(image) - 1) :])
    is_transposed = _is_true(recorded, entry["transposed"])
    fine, coarse = (gradient, image) if is_transposed else (image, gradient)
    groups = _integer(recorded, entry["groups"])
    conv = _convolution(fine, coarse, weight, groups, dtype)
    mask = recorded.argument(entry["asked"])
    flags = mask if isinstance(mask, list) and len(mask) == 3 else [True, True, True]
    works = [conv.to_coarse() if is_transposed else conv.to_fine()] if flags[0] else []
    return [*works, *([conv.to_weights()] if flags[1] else [])]


def _images(image: tuple[int, ...], weight: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Extents of image [batch, channels, pixels...] and weights; an image may have no batch."""
    if len(weight) < 3 or len(image) not in (len(weight), len(weight) - 1):
        raise ValueError("not the shapes of a convolution")
    return image if len(image) == len(weight) else (1, *image), weight


def _convolution(
    fine: Sequence[int], coarse: Sequence[int], weight: Sequence[int], groups: int, dtype: str
) -> Convolution:
    sizes = *fine, *coarse, *weight, groups
    if min(sizes) < 1 or coarse[1] != weight[0] or fine[1] != weight[1] * groups:
        raise ValueError("shapes that do not fit each other")
    return Convolution(
        math.prod(fine), math.prod(coarse), fine[1], coarse[1], math.prod(weight[2:]), groups, dtype
    )


def _is_true(recorded: Recorded, place: int | None) -> bool:
    return recorded.argument(place) is True


def _integer(recorded: Recorded, place: int) -> int:
    """A number; 1 where it is not recorded."""
    value = recorded.argument(place)
    return value if isinstance(value, int) else 1


def _per_dimension(recorded: Recorded, place: int | None, default: int, space: int) -> list[int]:
    """An argument with a value for each dimension, or one for all."""
    value = recorded.argument(place)
    values = value if isinstance(value, list) and value else [value]
    numbers = [item if isinstance(item, int) else default for item in values]
    return numbers if len(numbers) == space else numbers[:1] * space
