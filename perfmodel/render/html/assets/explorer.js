// All devices over a grid of sizes: sliders choose a case, the bars are all devices' times.
page.explorer = () => {
  const found = page.data.explorer;
  if (!found) return;
  const section = page.section("explorer", "Explorer");
  const operator = page.el(
    "select",
    { id: "explorer-operator", onchange: () => build() },
    found.operators.map((one, i) => page.el("option", { value: i }, one.title)),
  );
  const search = page.el("input", { type: "search", id: "explorer-search", oninput: () => draw() });
  const sliders = page.el("div", { class: "sliders" });
  const said = page.el("p", { "aria-live": "polite", id: "explorer-result" });
  const list = page.el("div");
  const chart = page.el("div", { class: "chart", id: "explorer-chart" });
  section.append(
    page.el(
      "div",
      { class: "controls" },
      page.el("label", {}, "Operator ", operator),
      page.el("label", {}, "Devices with ", search),
    ),
    sliders,
    said,
    page.el("div", { class: "two" }, list, chart),
  );
  let at = [];
  const kept = new Set(); // places of the devices whose curves are drawn
  let own = false; // whether the user has ticked any
  const now = () => found.operators[operator.value];

  // Place of the case in an operator's arrays: the first size varies slowest.
  const place = (sizes, index) =>
    sizes.reduce((sum, size, i) => sum * size.values.length + index[i], 0);
  const cell = (device, index) => {
    const data = now().times[device];
    const us = data?.us[place(now().sizes, index)];
    return us ? { us, limiter: found.limiters[data.limiter[place(now().sizes, index)]] } : null;
  };
  const matches = (slug) =>
    search.value
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean)
      .every((word) => slug.includes(word));

  function build() {
    at = now().sizes.map((size) => size.values.length >> 1);
    sliders.replaceChildren(
      ...now().sizes.map((size, i) => {
        const output = page.el("output", {}, String(size.values[at[i]]));
        const input = page.el("input", {
          type: "range",
          min: 0,
          max: size.values.length - 1,
          step: 1,
          value: at[i],
          "data-size": size.name,
          "aria-valuetext": String(size.values[at[i]]),
          oninput: () => {
            at[i] = Number(input.value);
            output.textContent = String(size.values[at[i]]);
            input.setAttribute("aria-valuetext", output.textContent);
            draw();
          },
        });
        return page.el("label", {}, page.el("span", {}, size.name), output, input);
      }),
    );
    if (!own) {
      kept.clear();
      for (const row of ranked().slice(0, 5)) kept.add(row.i);
    }
    draw();
  }

  // Devices that have a time for the case, the fastest first.
  const ranked = () =>
    found.devices
      .map((slug, i) => ({ slug, i, ...cell(i, at) }))
      .filter((row) => row.us && matches(row.slug))
      .sort((a, b) => a.us - b.us);

  // Why devices that have the words in their names are not in the list.
  function lacking() {
    const reasons = new Map();
    for (const [i, reason] of Object.entries(now().lacking ?? {}))
      if (matches(found.devices[i]))
        reasons.set(reason, [...(reasons.get(reason) ?? []), found.devices[i]]);
    return [...reasons]
      .map(([reason, slugs]) => ` Left out, ${reason}: ${slugs.join(", ")}.`)
      .join("");
  }

  function draw() {
    const rows = ranked();
    const useful = now().useful[place(now().sizes, at)];
    said.textContent = rows.length
      ? `${rows.length} of ${found.devices.length} devices; the fastest is ${rows[0].slug}, ${page.time(rows[0].us)}.${lacking()}`
      : `No device with these words in its name has a time.${lacking()}`;
    const [least, most] = [
      Math.min(...rows.map((row) => row.us)),
      Math.max(...rows.map((row) => row.us)),
    ];
    const along = (us) => 2 + (96 * Math.log(us / least)) / (Math.log(most / least) || 1);
    const body = page.el(
      "tbody",
      {},
      rows.map((row) =>
        page.el(
          "tr",
          {},
          page.el(
            "th",
            { scope: "row" },
            page.el(
              "label",
              {},
              page.el("input", {
                type: "checkbox",
                checked: kept.has(row.i),
                "aria-label": `draw ${row.slug}`,
                onchange: (event) => {
                  own = true;
                  if (event.target.checked) kept.add(row.i);
                  else kept.delete(row.i);
                  redraw();
                },
              }),
              ` ${row.slug}`,
            ),
          ),
          page.el("td", { class: "number" }, page.time(row.us)),
          page.el(
            "td",
            {},
            (() => {
              const svg = page.svg("svg", {
                viewBox: "0 0 100 10",
                preserveAspectRatio: "none",
                "aria-hidden": "true",
              });
              svg.append(
                page.svg("rect", {
                  x: 0,
                  y: 4.5,
                  height: 1,
                  width: along(row.us),
                  class: "fill-sky",
                }),
                page.svg("rect", {
                  x: along(row.us) - 1,
                  y: 1,
                  height: 8,
                  width: 2,
                  class: "fill-sky",
                }),
              );
              return svg;
            })(),
          ),
          page.el(
            "td",
            { class: "number" },
            useful ? page.si((useful / row.us) * 1e6, "FLOP/s") : "–",
          ),
          page.el("td", {}, row.limiter),
        ),
      ),
    );
    list.replaceChildren(
      page.el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Devices by time" },
        page.el(
          "table",
          { class: "terms explorer" },
          page.el(
            "caption",
            { class: "hidden-text" },
            "Devices by time: time, time on a log scale, rate and limiter",
          ),
          page.el(
            "colgroup",
            {},
            ["name", "value", "", "rate", "limiter"].map((name) => page.el("col", { class: name })),
          ),
          body,
        ),
      ),
    );
    redraw();
  }

  // Time over the first size, of the devices ticked; names stand at the right, in the order of the
  // curves' ends.
  const curve = (width) => {
    const axis = now().sizes[0];
    const chosen = ranked().filter((row) => kept.has(row.i));
    if (!chosen.length) {
      chart.replaceChildren(page.el("p", { class: "note" }, "Tick devices to draw their curves."));
      return;
    }
    const lines = chosen.map((row) =>
      axis.values
        .map((value, i) => [value, cell(row.i, [i, ...at.slice(1)])?.us])
        .filter(([, us]) => us),
    );
    const height = 380;
    const svg = page.svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Time over ${axis.name} of ${chosen.map((row) => row.slug).join(", ")}`,
    });
    const names = Math.max(...chosen.map((row) => page.textWidth(row.slug, 12))) + 20;
    const box = { left: 62, top: 24, right: width - names, bottom: height - 42 };
    const points = lines.flat();
    if (points.length) {
      const span = (values, pad) => [Math.min(...values) / pad, Math.max(...values) * pad];
      const x = page.logScale(
        span(
          points.map(([value]) => value),
          1.1,
        ),
        [box.left, box.right],
      );
      const y = page.logScale(
        span(
          points.map(([, us]) => us),
          1.6,
        ),
        [box.bottom, box.top],
      );
      page.axes(svg, box, x, y, {
        xLabel: axis.name,
        yLabel: "time",
        xFormat: page.ratio,
        yFormat: page.time,
      });
      lines.forEach((line, i) => {
        const [colour, shape] = page.look(i);
        svg.append(
          page.svg("path", {
            class: `roof ${colour}`,
            d: `M${line.map(([value, us]) => `${x(value)},${y(us)}`).join("L")}`,
          }),
        );
        for (const [value, us] of line)
          svg.append(
            page.mark(shape, 4, {
              class: `${colour} fill-ground`,
              transform: `translate(${x(value)},${y(us)})`,
            }),
          );
      });
      name(svg, chosen, lines.map((line) => line.at(-1) && [x(line.at(-1)[0]), y(line.at(-1)[1])]), box);
      const axisLine = x(axis.values[at[0]]);
      svg.append(
        page.svg("line", {
          class: "ridge grey",
          x1: axisLine,
          x2: axisLine,
          y1: box.top,
          y2: box.bottom,
        }),
      );
    }
    chart.replaceChildren(svg);
  };
  // The names beside the curves' ends, pushed apart by a line of text, each with a line to its end.
  function name(svg, chosen, ends, box) {
    const order = chosen
      .map((row, i) => ({ slug: row.slug, i, end: ends[i] }))
      .filter((one) => one.end)
      .sort((a, b) => a.end[1] - b.end[1]);
    const room = Math.min(15, (box.bottom - box.top) / Math.max(order.length, 1));
    let least = box.top;
    for (const one of order) least = (one.y = Math.max(one.end[1], least)) + room;
    let most = box.bottom;
    for (const one of [...order].reverse()) most = (one.y = Math.min(one.y, most)) - room;
    for (const one of order) {
      const [colour] = page.look(one.i);
      svg.append(
        page.svg("line", {
          class: `joined ${colour}`,
          x1: one.end[0] + 5,
          y1: one.end[1],
          x2: box.right + 12,
          y2: one.y,
        }),
        page.svg(
          "text",
          {
            x: box.right + 15,
            y: one.y,
            "dominant-baseline": "central",
            class: `fill-${colour}`,
            "data-label": "",
          },
          one.slug,
        ),
      );
    }
  }
  const redraw = page.drawn(chart, curve);
  build();
  section.append(page.el("p", { class: "note" }, `${found.note} The bars are on a log scale.`));
};
