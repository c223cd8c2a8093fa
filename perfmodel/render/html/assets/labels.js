// Places for text in a drawing where it covers no other text. A text is an oriented box; two boxes
// are apart if one of their four sides' directions separates them.
let measure = null;

page.textWidth = (text, size) => {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = `${size}px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  return measure.measureText(text).width;
};

// As much of a text as a width holds, with an ellipsis where that is not all.
page.shortened = (text, width, size) => {
  let end = text.length;
  const shown = () => (end < text.length ? `${text.slice(0, end)}…` : text);
  while (end > 1 && page.textWidth(shown(), size) * 1.04 > width) end -= 1;
  return shown();
};

// Corners of a text that starts at (x, y), the middle of its height, turned by `angle` radians.
function corners({ x, y, width, height, angle }) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  const along = (t, u) => [x + t * c - u * s, y + t * s + u * c];
  const h = height / 2;
  return [along(0, -h), along(width, -h), along(width, h), along(0, h)];
}

function apart(one, other) {
  for (const [a, b] of [
    [one, other],
    [other, one],
  ]) {
    for (const i of [0, 1]) {
      const side = [a[i + 1][0] - a[i][0], a[i + 1][1] - a[i][1]];
      const project = (points) => points.map(([x, y]) => x * side[0] + y * side[1]);
      const [mine, theirs] = [project(a), project(b)];
      if (Math.max(...mine) <= Math.min(...theirs) || Math.max(...theirs) <= Math.min(...mine))
        return true;
    }
  }
  return false;
}

page.Places = class {
  constructor(width, height, left = 0, top = 0) {
    this.bounds = { width, height, left, top };
    this.taken = [];
  }

  // Reserves an area: no text will cover it.
  take(box) {
    this.taken.push(corners({ angle: 0, ...box }));
  }

  // The first of the places offered that is free, or null.
  first(offered) {
    const { width, height, left, top } = this.bounds;
    for (const box of offered) {
      const mine = corners(box);
      const inside = mine.every(([x, y]) => x >= left && x <= width && y >= top && y <= height);
      if (inside && this.taken.every((other) => apart(mine, other))) {
        this.taken.push(mine);
        return box;
      }
    }
    return null;
  }

  // Writes the longest of `words` that has a place among `offers(width)`; gives the text or null.
  write(group, words, offers, attributes = {}, size = 12) {
    for (const text of words) {
      const width = page.textWidth(text, size) * 1.04 + 6;
      const box = this.first(
        offers(width).map((at) => ({ angle: 0, ...at, width, height: size * 1.25 })),
      );
      if (box === null) continue;
      const turn = box.angle ? `rotate(${(box.angle * 180) / Math.PI} ${box.x} ${box.y})` : null;
      group.append(
        page.svg(
          "text",
          {
            x: box.x,
            y: box.y,
            "dominant-baseline": "central",
            "font-size": size,
            transform: turn,
            "data-label": "",
            ...attributes,
          },
          text,
        ),
      );
      return text;
    }
    return null;
  }
};
