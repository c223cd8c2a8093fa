"""Helpers for tests of charts: kernels to draw, and the artists of a figure."""

import math

from perfmodel.hardware import load
from perfmodel.render.chart import save
from perfmodel.render.dots import WARNING
from perfmodel.render.labels import Box, text_inches
from perfmodel.render.roofline import roofline_chart
from perfmodel.render.roofs import Kernel, roofs

H100 = load("h100-sxm")
INTENSITY = {"hbm": 500.0, "l2": 120.0, "shared": 50.0}


def kernel(label="tiled", rate=4e14, measured=False, device="h100-sxm", **changes):
    return Kernel(label, device, rate, {**INTENSITY, **changes}, measured)


def chart(*kernels, dtypes=("fp16",), **options):
    return roofline_chart([roofs(H100, dtypes)], kernels, **options)


def lines(chart, gid):
    """The line artists with this id, over all panels."""
    return [line for axes in chart.figure.axes for line in axes.lines if line.get_gid() == gid]


def texts(chart):
    return [item for axes in chart.figure.axes for item in axes.texts]


def polygons(chart):
    """Words of each panel's texts and the corners that they cover, in inches on the page."""
    figure = chart.figure
    figure.draw_without_rendering()
    for axes in figure.axes:
        found = []
        for item in axes.texts:
            angle = math.radians(item.get_rotation())
            x, y = item.get_transform().transform(item.get_position()) / figure.dpi
            points = item.get_fontsize()
            words = item.get_text()
            if words == WARNING:
                continue
            box = Box((x, y), text_inches(words, points), 0.95 * points / 72, angle)
            found.append((words, box))
        yield axes, found


def svg(chart, path):
    save(chart, path)
    return path.read_text()
