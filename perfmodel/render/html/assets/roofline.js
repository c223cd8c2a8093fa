// The hierarchical roofline of one device: a case stands once per level of memory. Levels, types and
// the kind of roof can be switched; sliders move roofs and cases.
const LEVEL_LOOKS = {
  hbm: { colour: "blue", dash: null, shape: "circle", radius: 4 },
  llc: { colour: "purple", dash: "9 3 2 3", shape: "diamond", radius: 4.5 },
  l2: { colour: "green", dash: "7 4", shape: "square", radius: 5 },
  shared: { colour: "ochre", dash: "2 3", shape: "triangle", radius: 6.5 },
  peer: { colour: "vermilion", dash: "12 3 2 3 2 3", shape: "down", radius: 5 },
  network: { colour: "sky", dash: "12 6", shape: "plus", radius: 5 },
  host: { colour: "grey", dash: "4 4", shape: "down", radius: 4 },
};
const MOVED = {
  hbm: "hbm_bandwidth",
  llc: "llc_bandwidth",
  l2: "l2_bandwidth",
  shared: "shared_bandwidth",
  peer: "peer_bandwidth",
  network: "network_bandwidth",
  host: "host_bandwidth",
};

const rateOf = (one, time = one.time_us) => (one.work ? (one.work / time) * 1e6 : null);

const factor = (...names) =>
  names.reduce((product, name) => product * 2 ** (page.state.factors[name] ?? 0), 1);

// Where a roof stands now: measured or published, and moved by the sliders. Clock and units carry
// what is on the chip.
function height(roof, ...names) {
  const value = page.state.roofs === "measured" ? (roof.measured ?? roof.peak) : roof.peak;
  return value * factor(...names);
}

const bandwidth = (device, level) =>
  height(
    device.levels[level],
    MOVED[level],
    ...(level === "hbm" ? [] : level === "shared" ? ["clock", "units"] : ["clock"]),
  );
const ceiling = (roof, kind) => height(roof, kind, "clock", "units");

// Shares of each roof that a case reaches, by name: [["HBM3", 0.7], …], the nearest roof first.
page.shares = (one) => {
  const device = page.data.devices[one.device];
  if (!device || !one.work) return [];
  const rate = rateOf(one);
  const mine = (one.flops?.matrix ? device.matrix : device.vector).filter(
    (roof) => !roof.types.length || roof.types.includes(one.compute_type),
  );
  const found = mine.map((roof) => [roof.name, rate / roof.peak]);
  for (const [level, roof] of Object.entries(device.levels)) {
    const intensity = one.arithmetic_intensity?.[level];
    if (intensity > 0) found.push([roof.name, rate / (roof.peak * intensity)]);
  }
  return found.sort((a, b) => b[1] - a[1]);
};

page.roofline = () => {
  const placed = (one) =>
    one.work > 0 && Object.values(one.arithmetic_intensity ?? {}).some((value) => value > 0);
  const slugs = Object.keys(page.data.devices).filter(
    (slug) =>
      Object.keys(page.data.devices[slug].levels).length &&
      page.data.cases.some((one) => one.device === slug && placed(one)),
  );
  if (!slugs.length) return;
  const section = page.section("roofline", "Roofline");
  const device = page.el(
    "select",
    {
      id: "roofline-device",
      onchange: () => {
        choices();
        redraw();
      },
    },
    slugs.map((slug) => page.el("option", { value: slug }, slug)),
  );
  const levels = page.el("fieldset", {}, page.el("legend", {}, "Levels"));
  const types = page.el("fieldset", {}, page.el("legend", {}, "Types"));
  const kinds = page.el(
    "fieldset",
    {},
    page.el("legend", {}, "Roofs"),
    [
      ["measured", "measured where known"],
      ["peak", "published"],
    ].map(([value, said]) =>
      page.el(
        "label",
        {},
        page.el("input", {
          type: "radio",
          name: "roofs",
          value,
          checked: value === page.state.roofs,
          onchange: () => {
            page.state.roofs = value;
            redraw();
          },
        }),
        ` ${said}`,
      ),
    ),
  );
  const chart = page.el("div", { class: "chart", id: "roofline-chart" });
  const note = page.el("p", { class: "note" });
  section.append(
    page.el(
      "div",
      { class: "controls" },
      page.el("label", {}, "Device ", device),
      levels,
      types,
      kinds,
    ),
    chart,
    note,
  );

  const box = (parent, value, said, swatch) => {
    const input = page.el("input", {
      type: "checkbox",
      value,
      checked: true,
      onchange: () => redraw(),
    });
    parent.append(page.el("label", {}, input, " ", swatch ?? "", ` ${said}`));
  };
  const on = (parent) => [...parent.querySelectorAll("input:checked")].map((input) => input.value);
  const typeOf = (one) => one.compute_type ?? "other";
  const mine = () =>
    page.data.cases
      .map((one, i) => [one, i])
      .filter(([one]) => one.device === device.value && placed(one));

  function choices() {
    for (const parent of [levels, types]) parent.replaceChildren(parent.firstChild);
    const now = page.data.devices[device.value];
    for (const [level, roof] of Object.entries(now.levels)) {
      const look = LEVEL_LOOKS[level];
      const crossed =
        !["peer", "network", "host"].includes(level) ||
        mine().some(([one]) => one.arithmetic_intensity?.[level]);
      if (!crossed) continue;
      box(
        levels,
        level,
        roof.name,
        page.svg(
          "svg",
          { class: "swatch", viewBox: "0 0 34 12" },
          page.svg("line", {
            x1: 0,
            x2: 34,
            y1: 6,
            y2: 6,
            class: `roof ${look.colour}`,
            "stroke-dasharray": look.dash,
          }),
          page.mark(look.shape, 3.5, {
            class: `${look.colour} fill-ground`,
            transform: "translate(17,6)",
          }),
        ),
      );
    }
    for (const type of page.unique(mine().map(([one]) => typeOf(one)))) box(types, type, type);
    types.hidden = types.querySelectorAll("input").length < 2;
    note.textContent =
      (now.missing.length
        ? `Not drawn: ${now.missing.join(", ")}, whose bandwidth the spec does not give. `
        : "") +
      "Point at a mark, or walk them with the arrow keys; Enter shows its terms. A bar is a prediction's range.";
  }

  const draw = (width) => {
    const now = page.data.devices[device.value];
    const [shownLevels, shownTypes] = [on(levels), on(types)];
    const cases = mine().filter(([one]) => types.hidden || shownTypes.includes(typeOf(one)));
    const tall = width < 560 ? 340 : 470;
    const svg = page.svg("svg", {
      viewBox: `0 0 ${width} ${tall}`,
      role: "group",
      "aria-label": `Roofline of ${now.name} with ${cases.length} cases; the table of cases has their numbers`,
    });
    const frame = { left: 52, top: 24, right: width - 10, bottom: tall - 42 };
    const matrix = now.matrix.filter(
      (roof) =>
        types.hidden || !roof.types.length || roof.types.some((type) => shownTypes.includes(type)),
    );
    const roofs = [
      ...matrix.map((roof) => [roof, ceiling(roof, "matrix"), "ink"]),
      ...now.vector.map((roof) => [roof, ceiling(roof, "vector"), "grey"]),
    ];
    if (!roofs.length)
      roofs.push(...now.matrix.map((roof) => [roof, ceiling(roof, "matrix"), "ink"]));
    const top = Math.max(...roofs.map(([, value]) => value));
    const rates = cases.map(([one]) => rateOf(one, page.after(one) ?? one.time_us));
    const marks = cases
      .flatMap(([one]) => shownLevels.map((level) => one.arithmetic_intensity?.[level]))
      .filter((value) => value > 0);
    const ridges = shownLevels.map((level) => top / bandwidth(now, level));
    const xs = [
      ...ridges.map((r) => r / 6),
      ...ridges.map((r) => r * 6),
      ...marks.map((m) => m / 2.5),
      ...marks.map((m) => m * 2.5),
      1,
    ];
    const ys = [...rates.map((r) => r / 3), top * 2.6, top / 60];
    const x = page.logScale([Math.min(...xs), Math.max(...xs)], [frame.left, frame.right]);
    const y = page.logScale(
      [Math.min(...ys), Math.max(...ys, ...rates.map((r) => r * 2))],
      [frame.bottom, frame.top],
    );
    page.axes(svg, frame, x, y, {
      xLabel: "arithmetic intensity (FLOP/byte)",
      yLabel: "performance (FLOP/s)",
      xFormat: page.ratio,
      yFormat: (value) => page.si(value, "").replace(/\.0+ /, " "),
    });
    const group = page.svg("g", { id: "roofs" });
    svg.append(group);
    const places = new page.Places(frame.right, frame.bottom, frame.left, frame.top);
    drawCeilings(group, places, roofs, { now, x, y, frame, shownLevels });
    drawDiagonals(group, places, { now, x, y, frame, shownLevels, top });
    drawCases(svg, cases, rates, { x, y, shownLevels });
    chart.replaceChildren(svg);
  };
  choices();
  const redraw = page.drawn(chart, draw);
  page.on("factors", () => redraw());
  page.on("select", () => {
    const one = page.data.cases[page.state.selected];
    if (one && one.device !== device.value && slugs.includes(one.device)) {
      device.value = one.device;
      choices();
    }
    redraw();
  });
};

function drawCeilings(group, places, roofs, { now, x, y, frame, shownLevels }) {
  const fastest = Math.max(...shownLevels.map((level) => bandwidth(now, level)), 0);
  for (const [roof, value, colour] of roofs) {
    if (y(value) > frame.bottom || y(value) < frame.top) continue;
    const start = fastest
      ? Math.max(frame.left, Math.min(x(value / fastest), frame.right))
      : frame.left;
    group.append(
      page.svg("line", {
        class: `roof ${colour}`,
        x1: start,
        x2: frame.right,
        y1: y(value),
        y2: y(value),
        "data-roof": roof.name,
      }),
    );
    places.write(
      group,
      [`${roof.name} ${page.si(value, "FLOP/s")}`, roof.name],
      (width) =>
        [-10, 11].flatMap((up) =>
          Array.from({ length: 12 }, (_, i) => ({
            x: frame.right - width - ((frame.right - start - width) * i) / 12,
            y: y(value) + up,
          })),
        ),
      { class: `fill-${colour}` },
    );
  }
}

function drawDiagonals(group, places, { now, x, y, frame, shownLevels, top }) {
  for (const level of shownLevels) {
    const [roof, look, rate] = [now.levels[level], LEVEL_LOOKS[level], bandwidth(now, level)];
    const first = Math.max(x.domain[0], y.domain[0] / rate);
    const ends = [
      [x(first), y(first * rate)],
      [x(top / rate), y(top)],
    ];
    group.append(
      page.svg("line", {
        class: `roof ${look.colour}`,
        x1: ends[0][0],
        y1: ends[0][1],
        x2: ends[1][0],
        y2: ends[1][1],
        "stroke-dasharray": look.dash,
        "data-level": level,
      }),
      page.svg("line", {
        class: `ridge ${look.colour}`,
        x1: ends[1][0],
        x2: ends[1][0],
        y1: ends[1][1],
        y2: frame.bottom,
      }),
    );
    const angle = Math.atan2(ends[1][1] - ends[0][1], ends[1][0] - ends[0][0]);
    const length = Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]);
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    places.write(
      group,
      [`${roof.name} ${page.si(rate, "B/s")}`, roof.name],
      (width) =>
        [-10, 10].flatMap((lift) =>
          Array.from({ length: 16 }, (_, i) => 8 + ((length - width - 16) * i) / 15)
            .filter((t) => t > 0)
            .map((t) => ({
              x: ends[0][0] + t * c - lift * s,
              y: ends[0][1] + t * s + lift * c,
              angle,
            })),
        ),
      { class: `fill-${look.colour}` },
    );
    places.write(
      group,
      [page.ratio(top / rate)],
      (width) =>
        [-9, 9].map((side) => ({ x: ends[1][0] + side, y: frame.bottom - 4, angle: -Math.PI / 2 })),
      { class: `fill-${look.colour}` },
      11,
    );
  }
}

function drawCases(svg, cases, rates, { x, y, shownLevels }) {
  const bars = page.svg("g", {});
  const group = page.svg("g", { id: "roofline-dots" });
  // The inner levels' marks are larger and drawn first, so that all show where they coincide.
  const items = cases.flatMap(([one, index], i) =>
    shownLevels
      .filter((level) => one.arithmetic_intensity?.[level] > 0)
      .map((level, j) => {
        const look = LEVEL_LOOKS[level];
        const at = x(one.arithmetic_intensity[level]);
        if (j === 0 && one.low_us && one.high_us) {
          const scale = rates[i] * (page.after(one) ?? one.time_us);
          const effect = (page.after(one) ?? one.time_us) / one.time_us;
          bars.append(
            page.svg("line", {
              class: `bar ${look.colour}`,
              x1: at,
              x2: at,
              y1: y(scale / (one.high_us * effect)),
              y2: y(scale / (one.low_us * effect)),
            }),
          );
        }
        return {
          x: at,
          y: y(rates[i]),
          ...look,
          filled: false,
          selected: index === page.state.selected,
          name: page.called(one),
          choose: () => page.select(index),
          data: { "data-case": index, "data-at": level },
          describe: () => [
            ["time", page.time(page.after(one))],
            ...(one.low_us && one.high_us
              ? [["range", `${page.time(one.low_us)} to ${page.time(one.high_us)}`]]
              : []),
            ["rate", page.si(rates[i], "FLOP/s")],
            ...page
              .shares(one)
              .slice(0, 4)
              .map(([name, share]) => [`of ${name}`, page.share(share)]),
            [`FLOP/byte at ${page.term(one, level)}`, page.ratio(one.arithmetic_intensity[level])],
            ["limiter", page.term(one, one.limiter)],
            ...page.joined(one),
            ...Object.entries(one.terms_us ?? {})
              .filter(([, time]) => time > 0)
              .sort((a, b) => b[1] - a[1])
              .slice(0, 5)
              .map(([name, time]) => [page.term(one, name), page.time(time)]),
          ],
        };
      })
      .reverse(),
  );
  page.dots(group, items);
  svg.append(bars, group);
}
