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

const isSlack = (one, name) => name === "power" && one.limiter !== "power";

// How the terms of a case join: the longest of those that run beside each other, what the others
// add to it, and the terms before and behind.
function joining(one) {
  const terms = Object.entries(one.terms_us ?? {}).filter(([, time]) => time > 0);
  const serial = terms.filter(([name]) => SERIAL.includes(name));
  const beside = terms.filter(([name]) => !SERIAL.includes(name)).sort((a, b) => b[1] - a[1]);
  const longest = SERIAL.includes(one.limiter)
    ? (beside.find(([name]) => !isSlack(one, name))?.[1] ?? 0)
    : (one.terms_us?.[one.limiter] ?? 0);
  const added = serial.reduce((sum, [, time]) => sum + time, 0);
  return { serial, beside, longest, added, rest: one.time_us - longest - added };
}

// Rows of the waterfall: name, what it is, microseconds, where the bar starts and ends, its colour.
page.waterfall = (one) => {
  const { serial, beside, longest, rest } = joining(one);
  const row = (name, time, start, colour) => ({
    name:
      page.term(one, name) +
      (name === one.limiter ? ", the limiter" : isSlack(one, name) ? ", slack" : ""),
    about: isSlack(one, name)
      ? "time at the power limit; slack, for it does not hold the clocks down"
      : (page.data.terms[name] ?? "traffic"),
    time,
    start,
    end: start + time,
    colour: name === one.limiter ? "vermilion" : colour,
  });
  const rows = beside.map(([name, time]) => row(name, time, 0, "sky"));
  let at = longest;
  if (Math.abs(rest) > 1e-3 * one.time_us) {
    const [start, end] = [Math.min(at, at + rest), Math.max(at, at + rest)];
    const about = "the terms beside the longest overlap with it imperfectly";
    rows.push({ name: "what the others add", about, time: rest, start, end, colour: "ochre" });
    at += rest;
  }
  for (const [name, time] of serial) {
    rows.push({ ...row(name, time, at, "grey") });
    rows.at(-1).name = `+ ${rows.at(-1).name}`;
    at += time;
  }
  rows.push({ name: "= time", time: one.time_us, start: 0, end: one.time_us, colour: "ink" });
  return rows;
};

// How the terms of a case join, as a line of a tooltip.
page.joined = (one) => {
  if (!one.terms_us) return [];
  const { longest, rest, added } = joining(one);
  const parts = [
    [longest, ""],
    [Math.abs(rest) > 1e-3 * one.time_us ? rest : 0, " by the others beside it"],
    [added, " before and behind"],
  ];
  return [
    [
      "joined",
      parts
        .filter(([time]) => time)
        .map(([time, said]) => page.time(time) + said)
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
      "The limiter is the longest term, in vermilion. Terms without a + run beside each other; as they overlap imperfectly, the others add the ochre part to the longest of them. Terms with a + stand before or behind and are added.",
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
          page.el("th", { scope: "row", "data-about": row.about }, row.name),
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
