// Log-log axes of a panel: scales, ticks and their labels.
page.logScale = ([low, high], [from, to]) => {
  const scale = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  scale.domain = [low, high];
  return scale;
};

page.linearScale = ([low, high], [from, to]) => {
  const scale = (value) => from + ((to - from) * (value - low)) / (high - low);
  scale.domain = [low, high];
  scale.linear = true;
  return scale;
};

function powersOfTwo([low, high], room) {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  const step = Math.max(Math.ceil((last - first + 1) / Math.max(room, 2)), 1);
  const found = [];
  for (let power = Math.ceil(first / step) * step; power <= last; power += step)
    found.push(2 ** power);
  return found;
}

// Round numbers from `low` on, about as many as there is room for.
function evenTicks([low, high], room) {
  const rough = (high - low) / Math.max(room, 2);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

// Round numbers of bytes are those of a binary prefix.
function ticks(scale, room) {
  const unit =
    scale.kind === "binary" ? 1024 ** Math.floor(Math.log(scale.domain[1]) / Math.log(1024)) : 1;
  if (scale.linear)
    return evenTicks(scale.domain.map((end) => end / unit), room).map((value) => value * unit);
  if (scale.kind === "binary") return powersOfTwo(scale.domain, room);
  const [low, high] = scale.domain;
  const powers = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * (1 + 1e-9); power += 1)
    powers.push(10 ** power);
  if (powers.length <= 2) {
    const around = powers
      .concat(powers.length ? [] : [low])
      .flatMap((p) => [p / 5, p / 2, p, 2 * p, 5 * p]);
    return page
      .unique(around.map((value) => Number(value.toPrecision(3))))
      .filter((value) => value >= low && value <= high);
  }
  const step = Math.ceil(powers.length / Math.max(room, 2));
  return powers.filter((_, i) => i % step === 0);
}

// Draws the frame of a panel and gives its group; `box` is {left, top, right, bottom}.
page.axes = (svg, box, x, y, { xLabel, yLabel, xFormat, yFormat }) => {
  const group = page.svg("g", { class: "axis" });
  for (const value of ticks(x, (box.right - box.left) / 70)) {
    group.append(
      page.svg("line", { class: "grid", x1: x(value), x2: x(value), y1: box.top, y2: box.bottom }),
      page.svg(
        "text",
        { x: x(value), y: box.bottom + 15, "text-anchor": "middle" },
        xFormat(value),
      ),
    );
  }
  for (const value of ticks(y, (box.bottom - box.top) / 30)) {
    group.append(
      page.svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }),
      page.svg(
        "text",
        { x: box.left - 6, y: y(value), "text-anchor": "end", "dominant-baseline": "central" },
        yFormat(value),
      ),
    );
  }
  group.append(
    page.svg("path", { d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }),
    page.svg(
      "text",
      { x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" },
      xLabel,
    ),
    page.svg("text", { x: box.left, y: box.top - 9, "text-anchor": "start" }, yLabel),
  );
  svg.append(group);
  return group;
};
