"""Texts of a drawing in the browser that cover each other."""

import numpy as np

from perfmodel.render.labels import overlaps

CORNERS = """
selector => [...document.querySelectorAll(selector)].map(node => {
  const box = node.getBBox();
  const matrix = node.getScreenCTM();
  const at = (x, y) => { const p = new DOMPoint(x, y).matrixTransform(matrix); return [p.x, p.y]; };
  const [x, y, w, h] = [box.x, box.y + 0.12 * box.height, box.width, 0.76 * box.height];
  return [node.textContent, [at(x, y), at(x + w, y), at(x + w, y + h), at(x, y + h)]];
})
"""


class Corners:
    """Corners of a text, as `perfmodel.render.labels.overlaps` wants them."""

    def __init__(self, points):
        self.points = np.array(points)

    def corners(self):
        return self.points


def overlapping(page, selector):
    """How many texts the selector finds, and which cover one before them."""
    found = page.evaluate(CORNERS, selector)
    covered = []
    for i, (words, points) in enumerate(found):
        others = np.array([other for _, other in found[:i]]).reshape(-1, 4, 2)
        if overlaps(Corners(points), others).any():
            covered.append(words)
    return len(found), covered
