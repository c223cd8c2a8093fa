// Stacked bars on one scale from zero. The longest lengths over all bars have a colour each, the
// rest are grey; each can be pointed at and walked with the arrow keys.
const COLOURED = 6;
const BAR = { line: 17, gap: 7, height: 20, after: 14 }; // a line of text, what is above and below a bar

page.bars = (parent, part) => {
  const format = page.formats[part.kind];
  const view = page.el(
    "select",
    { onchange: () => redraw() },
    part.views.map(([name], i) => page.el("option", { value: i }, name)),
  );
  const legend = page.el("p", { class: "legend" });
  const chart = page.el("div", { class: "chart bars" });
  parent.append(
    page.el("h3", {}, part.title),
    part.views.length > 1
      ? page.el("div", { class: "controls" }, page.el("label", {}, "By ", view))
      : "",
    legend,
    chart,
  );
  const noted = (bar) => [format(sum(bar)), bar.note].filter(Boolean).join(", ");
  const sum = (bar) => bar.lengths.reduce((total, [, value]) => total + value, 0);

  // Names by their sum over all bars: the order of the lengths in a bar, and who has a colour.
  const namesOf = (bars) => {
    const sums = new Map();
    for (const bar of bars)
      for (const [name, value] of bar.lengths) sums.set(name, (sums.get(name) ?? 0) + value);
    const names = [...sums.keys()];
    return part.ranked ? names.sort((a, b) => sums.get(b) - sums.get(a)) : names;
  };

  const draw = (width) => {
    const bars = part.views[view.value || 0][1];
    const names = namesOf(bars);
    const limits = page.unique(bars.map((bar) => bar.limit));
    const coloured = names.length <= COLOURED + 1 ? names.length : COLOURED;
    const colour = (name) => {
      const i = names.indexOf(name);
      return i < coloured ? page.colours[i] : "grey";
    };
    legend.replaceChildren(
      ...names
        .slice(0, coloured)
        .map((name) =>
          page.el("span", {}, page.swatch(`fill-${colour(name)}`), name),
        ),
      ...(coloured < names.length
        ? [page.el("span", {}, page.swatch("fill-grey"), `${names.length - coloured} more`)]
        : []),
    );
    const ends = bars.flatMap((bar) => [sum(bar), bar.high ?? 0, bar.limit ?? 0]);
    const most = Math.max(...ends) || 1;
    const x = (value) => 1 + ((width - 8) * value) / most;
    // Where a label and its note have no room side by side, the note has a line of its own.
    const lines = bars.some((bar) => page.textWidth(`${bar.label}${noted(bar)}`, 12) + 30 > width)
      ? 2
      : 1;
    const step = lines * BAR.line + BAR.gap + BAR.height + BAR.after;
    const svg = page.svg("svg", {
      viewBox: `0 0 ${width} ${step * bars.length}`,
      role: "group",
      "aria-label": `${part.title}, ${bars.length} ${bars.length === 1 ? "bar" : "bars"}`,
    });
    const [group, marks] = [page.svg("g", { class: "lengths" }), page.svg("g", { class: "marks" })];
    bars.forEach((bar, i) => 
      drawBar(svg, group, marks, bar, step * i, {
        x,
        width,
        names,
        colour,
        lines,
        limited: i === 0 || limits.length > 1,
      }),
    );
    svg.append(group, marks);
    page.walked([...group.children]);
    chart.replaceChildren(svg);
  };

  function drawBar(svg, group, marks, bar, top, { x, width, names, colour, lines, limited }) {
    const total = sum(bar);
    const note = noted(bar);
    const y = top + lines * BAR.line + BAR.gap;
    svg.append(
      page.svg(
        "text",
        { x: 1, y: top + BAR.line, "data-label": "" },
        page.shortened(bar.label, width - 4, 12),
      ),
      page.svg(
        "text",
        lines === 1
          ? { x: width - 2, y: top + BAR.line, "text-anchor": "end", "data-label": "" }
          : { x: 1, y: top + 2 * BAR.line, class: "small", "data-label": "" },
        note,
      ),
    );
    const ordered = [...bar.lengths].sort((a, b) => names.indexOf(a[0]) - names.indexOf(b[0]));
    let at = 0;
    for (const [name, value] of ordered) {
      const [left, right] = [x(at), x(at + value)];
      at += value;
      const node = page.svg(
        "g",
        { role: "img", "aria-label": `${bar.label}: ${name} ${format(value)}`, class: "length" },
        page.svg("rect", {
          x: left,
          y,
          width: Math.max(right - left - (right - left > 3 ? 1 : 0), 0.5),
          height: BAR.height,
          class: `fill-${colour(name)}`,
        }),
      );
      if (page.textWidth(name, 11) * 1.1 + 8 < right - left)
        node.append(
          page.svg(
            "text",
            { x: left + 4, y: y + BAR.height / 2, class: "inside", "dominant-baseline": "central" },
            name,
          ),
        );
      page.tip.on(node, () => [
        `${bar.label}: ${name}`,
        [
          ["of it", format(value)],
          ["share", page.share(value / total)],
          ["in all", note],
          ...(bar.low && bar.high ? [["range", `${format(bar.low)} to ${format(bar.high)}`]] : []),
          ...(bar.limit ? [[part.limit_name ?? "limit", format(bar.limit)]] : []),
        ],
      ]);
      group.append(node);
    }
    if (bar.low && bar.high) {
      const below = y + BAR.height + 4;
      svg.append(
        page.svg("path", {
          class: "range",
          d: `M${x(bar.low)},${below - 3}v6m0,-3H${x(bar.high)}m0,-3v6`,
        }),
      );
    }
    if (bar.limit) {
      const d = `M${x(bar.limit)},${y - 3}v${BAR.height + 6}`;
      marks.append(
        page.svg("path", { class: "limit halo", d }),
        page.svg("path", { class: "limit ink", d }),
      );
      if (!limited) return;
      const word = `${part.limit_name ?? "limit"} ${format(bar.limit)}`;
      const room = page.textWidth(word, 11);
      svg.append(
        page.svg(
          "text",
          {
            class: "small",
            x: Math.min(x(bar.limit) + 3, width - 2 - room),
            y: y + BAR.height + 13,
            "data-label": "",
          },
          word,
        ),
      );
    }
  }
  const redraw = page.drawn(chart, draw);
};
