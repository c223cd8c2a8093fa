// Dots of rows: axes and colours can be chosen where there are several, rows filtered. `part` says
// what is drawn (perfmodel.render.html.sections.Dots).
page.scatter = (parent, part, columns, rows, id) => {
  const has = (value) => value !== null && value !== undefined && value !== "";
  const known = Object.fromEntries(columns.map((column) => [column.key, column]));
  const header = (key) => known[key]?.header ?? key.replaceAll("_", " ");
  const usable = (keys) => keys.filter((key) => rows.some((row) => has(row[key])));
  const [xs, ys] = [usable(part.x), usable(part.y)];
  const drawable = (row, x, y) =>
    [x, y].every((key, i) =>
      part.log.includes("xy"[i]) ? row[key] > 0 : typeof row[key] === "number",
    );
  if (!xs.length || !ys.length || !rows.some((row) => drawable(row, xs[0], ys[0]))) return;
  const text = (row, key) => (has(row[key]) ? String(row[key]) : "");
  const choice = (label, name, keys, other) =>
    keys.length > 1
      ? page.el(
          "label",
          {},
          `${label} `,
          page.el(
            "select",
            { id: `${id}-${name}`, onchange: () => redraw() },
            keys.map((key) => page.el("option", { value: key }, header(key))),
          ),
        )
      : other;
  const chosen = {};
  const filters = part.filters.map((name) =>
    page.el(
      "label",
      {},
      `${header(name)} `,
      page.el(
        "select",
        {
          "data-filter": name,
          onchange: (event) => {
            chosen[name] = event.target.value;
            redraw();
          },
        },
        page.el("option", { value: "" }, "all"),
        page
          .unique(rows.map((row) => text(row, name)))
          .sort((a, b) => a - b || a.localeCompare(b))
          .map((value) => page.el("option", { value }, value || "(none)")),
      ),
    ),
  );
  const stats = page.el("p", { "aria-live": "polite", id: `${id}-result` });
  const legend = page.el("p", { class: "legend" });
  const chart = page.el("div", { class: "chart" });
  parent.append(
    part.compared ? "" : page.el("h3", {}, part.title),
    page.el(
      "div",
      { class: "controls" },
      filters,
      choice("across", "x", xs, null),
      choice("up", "y", ys, null),
      choice("colour by", "by", part.by, null),
    ),
    stats,
    legend,
    chart,
  );
  const picked = (name, keys) => document.getElementById(`${id}-${name}`)?.value ?? keys[0];

  // What values of a row's key are: the row says it where its rows are in several units.
  const kinds = (key, some) => {
    const own = known[key]?.kind ?? "number";
    if (!part.unit || !["measured", "predicted", "low", "high"].includes(key)) return own;
    const units = page.unique(some.map((row) => row[part.unit]).filter(has));
    return units.length === 1 ? units[0] : "number";
  };
  const write = (row, key) => page.shown(row[key], kinds(key, [row]));

  function tell(kept, x, y) {
    if (!kept.length) return "No row is left.";
    if (!part.compared) return `${kept.length} of ${rows.length} rows.`;
    const ratios = kept.map((row) => row[y] / row[x]);
    const ranged = kept.filter((row) => has(row.low) && has(row.high));
    const inside = ranged.filter((row) => row.low <= row[x] && row[x] <= row.high).length;
    const noisy = kept.filter((row) => row.noise_ln > 0);
    const noise = noisy.length
      ? ` Noise, where known (${noisy.length}): ${page.share(page.median(noisy.map((row) => row.noise_ln)))}; errors there ${page.share(page.median(noisy.map((row) => Math.abs(Math.log(row[y] / row[x])))))}.`
      : "";
    const covered = ranged.length
      ? `, ${page.share(inside / ranged.length)} inside the predicted range`
      : "";
    return `${kept.length} of ${rows.length} runs: off by ${page.share(page.median(ratios.map((r) => Math.abs(r - 1))))} in the median${covered}.${noise}`;
  }

  // Ends of an axis that shows all values, and the axis itself.
  function axis(values, which, ends, limit) {
    const all = limit ? [...values, limit] : values;
    if (part.log.includes(which))
      return page.logScale(
        all.length ? [Math.min(...all) / 1.6, Math.max(...all) * 1.6] : [1, 10],
        ends,
      );
    return page.linearScale([0, Math.max(...all, 0) * 1.08 || 1], ends);
  }

  const draw = (width) => {
    const [xKey, yKey, by] = [picked("x", xs), picked("y", ys), picked("by", part.by)];
    const kept = rows.filter(
      (row) =>
        drawable(row, xKey, yKey) &&
        part.filters.every((name) => !chosen[name] || text(row, name) === chosen[name]),
    );
    stats.textContent = tell(kept, xKey, yKey);
    const tall = part.compared ? Math.min(width, 640) : width < 560 ? 320 : 400;
    const svg = page.svg("svg", {
      viewBox: `0 0 ${width} ${tall}`,
      role: "group",
      "aria-label": `${part.title}: ${header(yKey)} over ${header(xKey)} of ${kept.length} rows; the table has their numbers`,
    });
    const box = { left: 66, top: 24, right: width - 14, bottom: tall - 42 };
    const values = (key) => kept.map((row) => row[key]);
    const [low, high] = part.ranges[yKey] ?? [];
    const spans =
      low && !part.compared ? [...values(low), ...values(high)].filter((v) => v > 0) : [];
    const both = [...values(xKey), ...values(yKey)];
    const x = axis(
      part.compared ? both : values(xKey),
      "x",
      [box.left, box.right],
      part.limits[xKey],
    );
    const y = axis(part.compared ? both : [...values(yKey), ...spans], "y", [box.bottom, box.top]);
    [x.kind, y.kind] = [kinds(xKey, kept), kinds(yKey, kept)];
    page.axes(svg, box, x, y, {
      xLabel: header(xKey),
      yLabel: header(yKey),
      xFormat: (value) => page.tick(value, x.kind),
      yFormat: (value) => page.tick(value, y.kind),
    });
    if (part.compared) exact(svg, x, y);
    if (part.limits[xKey]) limit(svg, x(part.limits[xKey]), box, xKey);
    const groups = page.unique(rows.map((row) => text(row, by)));
    const look = (row) => page.look(groups.indexOf(text(row, by)));
    key(groups, by);
    if (part.joined.length) join(svg, kept, { x, y, xKey, yKey, look });
    const bars = page.svg("g", {});
    const dots = page.svg("g", { id: `${id}-dots` });
    page.dots(
      dots,
      kept.map((row) => {
        const at = { x: x(row[xKey]), y: y(row[yKey]) };
        const [colour, shape] = look(row);
        if (spans.length && has(row[low]) && has(row[high]))
          bars.append(
            page.svg("line", {
              class: `bar ${colour}`,
              x1: at.x,
              x2: at.x,
              y1: y(row[low]),
              y2: y(row[high]),
            }),
          );
        return {
          ...at,
          shape,
          radius: kept.length > 400 ? 2.5 : 4,
          colour,
          filled: !part.fits || row[part.fits] !== false,
          name: part.name
            .filter((one) => has(row[one]))
            .map((one) =>
              known[one]?.kind === "text" ? row[one] : `${header(one)} ${write(row, one)}`,
            )
            .join(", "),
          describe: () => describe(row, xKey, yKey, [low, high]),
          data: {},
        };
      }),
    );
    svg.append(bars, dots);
    if (part.labelled) label(svg, kept, { x, y, xKey, yKey, box });
    chart.replaceChildren(svg);
  };

  // Each dot's value of the key that labels them, beside it where there is room.
  function label(svg, kept, { x, y, xKey, yKey, box }) {
    const places = new page.Places(box.right, box.bottom, box.left, box.top);
    const at = kept.map((row) => [x(row[xKey]), y(row[yKey])]);
    for (const [left, top] of at) places.take({ x: left - 5, y: top, width: 10, height: 10 });
    kept.forEach((row, i) => {
      const words = write(row, part.labelled);
      const [left, top] = at[i];
      places.write(
        svg,
        [words],
        (width) =>
          [9, 16].flatMap((away) => [
            { x: left + away - 3, y: top - away },
            { x: left + away - 3, y: top + away },
            { x: left - away + 3 - width, y: top - away },
            { x: left - away + 3 - width, y: top + away },
          ]),
        { class: "fill-grey" },
        10,
      );
    });
  }

  function describe(row, xKey, yKey, [low, high]) {
    const ends = (key) => part.ranges[key] ?? [`low_${key}`, `high_${key}`];
    const ranged = (key) => ends(key).every((end) => has(row[end]));
    const line = (key) => {
      const range = ranged(key)
        ? ` (${ends(key)
            .map((end) => write(row, end))
            .join(" to ")})`
        : "";
      return [header(key), write(row, key) + range];
    };
    const said = [xKey, yKey, low, high, ...part.name];
    const shown = columns.filter((column) => !column.hidden).map((column) => column.key);
    const others = page
      .unique([...part.x, ...part.y, "limiter", ...shown])
      .filter((key) => has(row[key]) && !said.includes(key) && !/^(low|high)_/.test(key));
    const ratio = row[yKey] / row[xKey];
    return [
      line(xKey),
      part.compared
        ? [header(yKey), `${write(row, yKey)} (×${ratio.toFixed(2)})`]
        : [header(yKey), write(row, yKey)],
      ...(ranged(yKey) ? [["range", ends(yKey).map((end) => write(row, end)).join(" to ")]] : []),
      ...others.slice(0, 14).map((key) => {
        const [name, value] = line(key);
        return [name, value.length > 90 ? `${value.slice(0, 90)}…` : value];
      }),
    ];
  }

  function exact(svg, x, y) {
    const ends = x.domain;
    const line = (factor) =>
      `${x(ends[0])},${y(Math.max(ends[0] * factor, ends[0]))} ${x(ends[1])},${y(Math.min(ends[1] * factor, ends[1]))}`;
    svg.append(
      page.svg("polygon", {
        class: "band",
        points: `${line(0.8)} ${line(1.2).split(" ").reverse().join(" ")}`,
      }),
      page.svg("line", {
        class: "grey",
        x1: x(ends[0]),
        y1: y(ends[0]),
        x2: x(ends[1]),
        y2: y(ends[1]),
      }),
    );
  }

  function limit(svg, at, box, key) {
    const word = `at most ${page.shown(part.limits[key], kinds(key, rows))}`;
    const before = at + page.textWidth(word, 12) + 8 > box.right;
    svg.append(
      page.svg("path", { class: "limit ink", d: `M${at},${box.top}V${box.bottom}` }),
      page.svg(
        "text",
        { x: at + (before ? -5 : 5), y: box.bottom - 8, "text-anchor": before ? "end" : "start" },
        word,
      ),
    );
  }

  function join(svg, kept, { x, y, xKey, yKey, look }) {
    const series = part.joined.filter((one) => one !== xKey);
    const lines = new Map();
    for (const row of kept) {
      const name = series.map((one) => text(row, one)).join("\t");
      lines.set(name, [...(lines.get(name) ?? []), row]);
    }
    for (const mine of lines.values()) {
      const at = [...mine].sort((a, b) => a[xKey] - b[xKey]);
      svg.append(
        page.svg("polyline", {
          class: `joined ${look(at[0])[0]}`,
          points: at.map((row) => `${x(row[xKey])},${y(row[yKey])}`).join(" "),
        }),
      );
    }
  }

  function key(groups, by) {
    legend.replaceChildren(
      ...(part.compared ? ["Grey: within 20 % of the measured. "] : []),
      ...(part.fits ? ["Empty marks do not fit. "] : []),
      ...(by && groups.length > 1 ? groups : []).map((name, i) => {
        const [colour, shape] = page.look(i);
        return page.el(
          "span",
          {},
          page.swatch(
            null,
            page.mark(shape, 4, {
              class: `${colour} fill-${colour}`,
              transform: "translate(17,6)",
            }),
          ),
          `${known[by]?.kind === "text" ? "" : `${header(by)} `}${name || "(none)"}`,
        );
      }),
    );
  }
  const redraw = page.drawn(chart, draw);
};
