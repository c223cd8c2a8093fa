// Puts the sections together.
const { data } = page;

function summary() {
  const section = page.section("summary", "Summary");
  const words = data.sentences.length
    ? data.sentences
    : ["No results were given: this page has the explorer alone."];
  section.append(...words.map((said) => page.el("p", {}, said)));
}

function cases() {
  if (!data.cases.length) return;
  const section = page.section("cases", "Cases");
  const has = (test) => data.cases.some(test);
  const called = (level) => data.cases.find((one) => one.levels?.[level])?.levels[level] ?? level;
  const columns = [
    { header: "device", kind: "text", get: (one) => one.device },
    { header: "operator", kind: "text", get: (one) => one.label || one.algorithm },
    ...["schedule", "implementation"]
      .filter((name) => has((one) => one[name]))
      .map((name) => ({ header: name, kind: "text", get: (one) => one[name] })),
    ...page
      .varying()
      .map((name) => ({
        header: name,
        kind: has(
          (one) => typeof one.problem[name] === "string" || typeof one.problem[name] === "boolean",
        )
          ? "text"
          : "number",
        get: (one) => one.problem[name],
      })),
    ...page
      .unique(data.cases.flatMap((one) => Object.keys(one.problem)))
      .filter((name) => !page.varying().includes(name) && name !== "op")
      .filter((name) => data.cases.every((one) => one.problem[name] !== undefined))
      .map((name) => ({
        header: name,
        kind: typeof data.cases[0].problem[name] === "number" ? "number" : "text",
        hidden: true,
        get: (one) => one.problem[name],
      })),
    { header: "time", kind: "time", get: (one) => one.time_us },
    { header: "low", kind: "time", get: (one) => one.low_us },
    { header: "high", kind: "time", get: (one) => one.high_us },
    ...(Object.keys(data.effects).length
      ? [
          {
            header: "time, what if",
            kind: "time",
            get: (one) => (data.effects[one.key] ? page.after(one) : null),
          },
        ]
      : []),
    { header: "limiter", kind: "text", get: (one) => one.limiter && page.term(one, one.limiter) },
    {
      header: "share of its roof",
      kind: "percent",
      get: (one) => page.shares(one)[0]?.[1] ?? null,
    },
    {
      header: "rate",
      kind: "flops_per_s",
      get: (one) => rateOf(one),
    },
    { header: `${called("hbm")} bytes`, kind: "bytes", get: (one) => one.bytes?.hbm },
    { header: "FLOP/byte", kind: "number", get: (one) => one.arithmetic_intensity?.hbm },
    { header: "memory", kind: "bytes", get: (one) => one.footprint_bytes },
  ].filter((column) =>
    has((one) => {
      const value = column.get(one);
      return value !== null && value !== undefined;
    }),
  );
  const draw = page.table(section, columns, data.cases, {
    caption: "Predicted cases",
    name: "cases",
    choose: (one) => page.select(data.cases.indexOf(one)),
    isSelected: (one) => data.cases.indexOf(one) === page.state.selected,
  });
  page.on("select", draw);
  page.on("factors", draw);
}

function assumptions() {
  const section = page.section("assumptions", "Assumptions");
  section.append(
    data.assumptions.length
      ? page.el(
          "ul",
          {},
          data.assumptions.map((one) =>
            page.el("li", {}, `${one.text} (${one.count} ${one.count === 1 ? "case" : "cases"})`),
          ),
        )
      : page.el(
          "p",
          {},
          "None: everything that the predictions needed was given or is in the specs.",
        ),
  );
}

function tools() {
  const root = document.documentElement;
  document.getElementById("command").textContent = data.command;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  document.getElementById("print").addEventListener("click", () => window.print());
  document
    .getElementById("download-json")
    .addEventListener("click", () => page.download("report.json", JSON.stringify(data, null, 1)));
}

summary();
page.sections(data.sections, "result");
page.roofline();
page.terms();
page.whatif();
cases();
page.sections(data.late_sections, "late");
page.explorer();
page.devices();
page.sections(data.tables, "table");
if (data.cases.length || data.assumptions.length) assumptions();
tools();
