// The terms of the selected case: what runs beside each other, what is added behind, and the sum.
const SERIAL = ["blocks", "gap", "launch", "included", "exchange"];

function bar(row, most) {
  const svg = page.svg("svg", {
    viewBox: "0 0 100 10",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const width = Math.max((100 * (row.end - row.start)) / most, 0.3);
  svg.append(
    page.svg("rect", {
      x: (100 * row.start) / most,
      y: 1,
      width,
      height: 8,
      class: `fill-${row.colour}`,
    }),
  );
  return svg;
}

// Rows of the waterfall: name, microseconds, where the bar starts and ends, and its colour.
page.waterfall = (one) => {
  const terms = Object.entries(one.terms_us ?? {}).filter(([, time]) => time > 0);
  const serial = terms.filter(([name]) => SERIAL.includes(name));
  const beside = terms.filter(([name]) => !SERIAL.includes(name)).sort((a, b) => b[1] - a[1]);
  const rows = beside.map(([name, time]) => ({
    name:
      page.term(one, name) +
      (name === one.limiter
        ? ", the limiter"
        : name === "power" && one.limiter !== "power"
          ? ", slack"
          : ""),
    time,
    start: 0,
    end: time,
    colour: name === one.limiter ? "vermilion" : "sky",
  }));
  const limit = (one.terms_us ?? {})[one.limiter] ?? 0;
  const added = serial
    .filter(([name]) => name !== one.limiter)
    .reduce((sum, [, time]) => sum + time, 0);
  const rest = one.time_us - limit - added;
  let at = limit;
  const step = (name, time, colour) => {
    rows.push({ name, time, start: Math.min(at, at + time), end: Math.max(at, at + time), colour });
    at += time;
  };
  if (Math.abs(rest) > 1e-3 * one.time_us) step("what the others add", rest, "ochre");
  for (const [name, time] of serial) if (name !== one.limiter) step(`+ ${name}`, time, "grey");
  rows.push({ name: "= time", time: one.time_us, start: 0, end: one.time_us, colour: "ink" });
  return rows;
};

// How the terms of a case join, as a line of a tooltip.
page.joined = (one) => {
  if (!one.terms_us) return [];
  const rows = page.waterfall(one);
  const of = (colour) =>
    rows.filter((row) => row.colour === colour).reduce((sum, row) => sum + row.time, 0);
  const parts = [
    ["vermilion", ""],
    ["ochre", " by the others beside it"],
    ["grey", " before and behind"],
  ];
  return [
    [
      "joined",
      parts
        .filter(([colour]) => of(colour))
        .map(([colour, said]) => page.time(of(colour)) + said)
        .join(" + "),
    ],
  ];
};

page.terms = () => {
  if (!page.data.cases.some((one) => one.terms_us)) return;
  const section = page.section("terms", "Terms of a case");
  const pick = page.el(
    "select",
    { id: "case", onchange: () => page.select(Number(pick.value)) },
    page.data.cases.map((one, i) => page.el("option", { value: i }, page.called(one))),
  );
  const body = page.el("tbody");
  const said = page.el("p", {});
  section.append(
    page.el("div", { class: "controls" }, page.el("label", { for: "case" }, "Case "), pick),
    said,
    page.el(
      "table",
      { class: "terms" },
      page.el("caption", { class: "hidden-text" }, "Terms and how they join"),
      page.el(
        "colgroup",
        {},
        page.el("col", { class: "name" }),
        page.el("col", { class: "value" }),
        page.el("col"),
      ),
      body,
    ),
    page.el(
      "p",
      { class: "note" },
      "Blue terms run beside each other and the longest is the limiter; as they overlap imperfectly, the others add the ochre part. What is grey stands before or behind and is added. Power is slack as long as it does not hold the clocks down.",
    ),
  );
  const draw = () => {
    const one = page.data.cases[page.state.selected];
    pick.value = page.state.selected;
    if (!one.terms_us) {
      body.replaceChildren();
      said.textContent = "This case was given without terms.";
      return;
    }
    const rows = page.waterfall(one);
    const most = Math.max(...rows.map((row) => row.end));
    body.replaceChildren(
      ...rows.map((row) =>
        page.el(
          "tr",
          {},
          page.el("th", { scope: "row" }, row.name),
          page.el("td", { class: "number" }, page.time(row.time)),
          page.el("td", {}, bar(row, most)),
        ),
      ),
    );
    const known = one.known
      ? ` Known: device ${one.known.device}, implementation ${one.known.implementation}, harness ${one.known.harness}.`
      : "";
    const ran = [
      one.implementation,
      Object.entries(one.tile ?? {})
        .map(([name, size]) => `${name}=${size}`)
        .join(" "),
    ]
      .filter(Boolean)
      .join(", tile ");
    said.textContent = `${page.called(one)}: ${page.time(one.time_us)}, range ${page.time(one.low_us)} to ${page.time(one.high_us)}, by ${ran}.${known}`;
  };
  page.on("select", draw);
  draw();
};
