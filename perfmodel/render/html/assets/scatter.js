// Predicted against measured time of runs, with filters.
page.scatter = () => {
  const runs = page.data.runs.filter((run) => run.predicted_us > 0 && run.measured_us > 0);
  if (!runs.length) return;
  const section = page.section("scatter", "Predicted against measured");
  const filters = ["device", "op", "implementation", "direction", "source"].filter(
    (name) => page.unique(runs.map((run) => run[name] ?? "")).length > 1,
  );
  const chosen = {};
  const stats = page.el("p", { "aria-live": "polite", id: "scatter-result" });
  const chart = page.el("div", { class: "chart square" });
  const by = page.el(
    "select",
    { id: "scatter-by", onchange: () => redraw() },
    filters.map((name) => page.el("option", { value: name }, name)),
  );
  const selects = filters.map((name) =>
    page.el(
      "label",
      {},
      `${name} `,
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
          .unique(runs.map((run) => String(run[name] ?? "")))
          .sort()
          .map((value) => page.el("option", { value }, value || "(none)")),
      ),
    ),
  );
  const legend = page.el("p", { class: "note" });
  section.append(
    page.el(
      "div",
      { class: "controls" },
      selects,
      filters.length ? page.el("label", {}, "colour by ", by) : null,
    ),
    stats,
    legend,
    chart,
  );

  const sizes = [
    "op",
    "device",
    "implementation",
    "dtype",
    "batch",
    "heads_q",
    "heads_kv",
    "seq_q",
    "seq_kv",
    "head_dim",
    "causal",
    "m",
    "n",
    "k",
    "rows",
    "cols",
    "limiter",
  ];
  const draw = (width) => {
    const kept = runs.filter((run) =>
      filters.every((name) => !chosen[name] || String(run[name] ?? "") === chosen[name]),
    );
    const ratios = kept.map((run) => run.predicted_us / run.measured_us);
    const inside = kept.filter(
      (run) => run.low_us <= run.measured_us && run.measured_us <= run.high_us,
    ).length;
    stats.textContent = kept.length
      ? `${kept.length} of ${runs.length} runs: off by ${page.share(page.median(ratios.map((r) => Math.abs(r - 1))))} in the median, ${page.share(inside / kept.length)} inside the predicted range.`
      : "No run is left.";
    const height = width;
    const svg = page.svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": `Predicted against measured time of ${kept.length} runs; the table below has their numbers`,
    });
    const box = { left: 62, top: 24, right: width - 12, bottom: height - 42 };
    const times = kept.flatMap((run) => [run.measured_us, run.predicted_us]);
    const ends = times.length ? [Math.min(...times) / 1.6, Math.max(...times) * 1.6] : [1, 10];
    const [x, y] = [
      page.logScale(ends, [box.left, box.right]),
      page.logScale(ends, [box.bottom, box.top]),
    ];
    page.axes(svg, box, x, y, {
      xLabel: "measured time",
      yLabel: "predicted time",
      xFormat: page.time,
      yFormat: page.time,
    });
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
    const groups = page.unique(runs.map((run) => String(run[by.value] ?? "")));
    const look = (run) => groups.indexOf(String(run[by.value] ?? "")) % page.shapes.length;
    legend.replaceChildren(
      "Grey: within 20 % of the measured time. ",
      ...groups
        .slice(0, 12)
        .flatMap((name, i) => [
          page.svg(
            "svg",
            { class: "swatch", viewBox: "0 0 34 12" },
            page.mark(page.shapes[i % page.shapes.length], 4, {
              class: `${page.colours[i % page.shapes.length]} fill-${page.colours[i % page.shapes.length]}`,
              transform: "translate(17,6)",
            }),
          ),
          `${name || "(none)"}  `,
        ]),
    );
    const group = page.svg("g", { id: "scatter-dots" });
    page.dots(
      group,
      kept.map((run) => ({
        x: x(run.measured_us),
        y: y(run.predicted_us),
        shape: page.shapes[look(run)],
        radius: kept.length > 400 ? 2.5 : 4,
        colour: page.colours[look(run)],
        filled: true,
        name: [run.op, run.implementation, run.device].filter(Boolean).join(" "),
        describe: () => [
          ["measured", page.time(run.measured_us)],
          [
            "predicted",
            `${page.time(run.predicted_us)} (×${(run.predicted_us / run.measured_us).toFixed(2)})`,
          ],
          ["range", `${page.time(run.low_us)} to ${page.time(run.high_us)}`],
          ...sizes
            .filter((name) => run[name] !== null && run[name] !== undefined && run[name] !== "")
            .map((name) => [name, page.formats.text(run[name])]),
        ],
        data: {},
      })),
    );
    svg.append(group);
    chart.replaceChildren(svg);
  };
  const redraw = page.drawn(chart, draw);
  const columns = [
    ...["device", "op", "implementation"].map((key) => ({ key, header: key, kind: "text" })),
    ...sizes
      .filter(
        (key) =>
          !["op", "device", "implementation", "limiter"].includes(key) &&
          runs.some((run) => run[key] !== null && run[key] !== undefined),
      )
      .map((key) => ({
        key,
        header: key,
        kind:
          typeof runs.find((run) => run[key] !== null && run[key] !== undefined)[key] === "number"
            ? "number"
            : "text",
      })),
    { key: "measured_us", header: "measured", kind: "time" },
    { key: "predicted_us", header: "predicted", kind: "time" },
    {
      key: "ratio",
      header: "predicted / measured",
      kind: "number",
      get: (run) =>
        run.predicted_us && run.measured_us ? run.predicted_us / run.measured_us : null,
    },
    { key: "low_us", header: "low", kind: "time" },
    { key: "high_us", header: "high", kind: "time" },
    { key: "limiter", header: "limiter", kind: "text" },
    { key: "reason", header: "not predicted because", kind: "text" },
    { key: "source", header: "source", kind: "text" },
  ].filter(
    (column) =>
      column.get ||
      page.data.runs.some(
        (run) =>
          run[column.key] !== null && run[column.key] !== undefined && run[column.key] !== "",
      ),
  );
  section.append(page.el("h3", {}, "Runs"));
  page.table(section, columns, page.data.runs, {
    caption: "Measured runs and their predictions",
    name: "runs",
  });
};
