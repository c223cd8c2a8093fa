// The page's charts are drawn; this script tells their rows, filters, colours and moves them, and
// makes the tables. Text is only ever set as text: nothing of the data is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["blue", "vermilion", "green", "ochre", "purple", "sky", "ink", "grey"];
const SHAPES = 9;
const MARKS = ["dots", "pale", "piece", "predicted", "measured"]
  .map((name) => `.${name} [data-row]`)
  .join();
const SHOWN = 200; // rows of a table at first; the rest follows when it is asked for

const has = (value) => value !== null && value !== undefined && value !== "";
const unique = (values) => [...new Set(values)];

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter(has));
  return node;
}
const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
// ---- numbers with their units, three digits each
const PREFIXES = [
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
];
const digits = (value) =>
  value.toFixed(Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);
function si(value, unit) {
  if (value === 0) return `0 ${unit}`;
  const size = Math.abs(value) * (1 + 5e-4);
  const [scale, prefix] = PREFIXES.find(([least]) => size >= least) ?? PREFIXES.at(-1);
  return `${digits(value / scale)} ${prefix}${unit}`;
}
function binary(value) {
  const power = Math.min(Math.floor(Math.log2(Math.max(Math.abs(value), 1)) / 10), 5);
  return power ? `${digits(value / 1024 ** power)} ${"KMGTP"[power - 1]}iB` : `${digits(value)} B`;
}
const share = (value) => `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)}%`;
const time = (us) => si(us / 1e6, "s");
const FORMATS = {
  text: (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : String(value)),
  number: (value) =>
    Number.isInteger(value) || Math.abs(value) >= 999.5
      ? value.toFixed(0)
      : Number(value.toPrecision(3)).toString(),
  percent: share,
  time,
  ms: (value) => si(value / 1e3, "s"),
  seconds: (value) => si(value, "s"),
  gb_per_s: (value) => si(value * 1e9, "B/s"),
  bytes_per_s: (value) => si(value, "B/s"),
  watts: (value) => si(value, "W"),
  binary,
  bytes: (value) => si(value, "B"),
  flops: (value) => si(value, "FLOP"),
  flops_per_s: (value) => si(value, "FLOP/s"),
};
const shown = (value, kind) => (has(value) ? FORMATS[kind](value) : "–");

// ---- rows
for (const table of Object.values(data.tables)) {
  table.rows = table.rows.map((cells) =>
    Object.fromEntries(table.columns.map((column, i) => [column.key, cells[i]])),
  );
  table.by_key = Object.fromEntries(table.columns.map((column) => [column.key, column]));
}
// What a cell is: the row says it where the rows of a table are measured in several units.
const kindOf = (table, column, row) =>
  table.unit && ["measured", "predicted", "low", "high"].includes(column.key)
    ? row[table.unit]
    : column.kind;
const written = (table, key, row) => shown(row[key], kindOf(table, table.by_key[key], row));
const called = (table, row, names) =>
  names
    .filter((key) => table.by_key[key] && has(row[key]))
    .map((key) =>
      table.by_key[key].kind === "text"
        ? row[key]
        : `${table.by_key[key].header} ${written(table, key, row)}`,
    )
    .join(", ");

// A row in lines: its name, then its numbers, those of the axes first, ranges behind their values.
function described(chart, row) {
  const table = data.tables[chart.table];
  const ranges = { time_us: ["low_us", "high_us"], predicted: ["low", "high"], ...chart.ranges };
  const ends = (key) => ranges[key] ?? [`low_${key}`, `high_${key}`];
  const ranged = (key) => ends(key).every((end) => table.by_key[end] && has(row[end]));
  const keys = table.columns
    .filter(({ key, hidden }) => (!hidden || key === "limiter") && has(row[key]))
    .map((column) => column.key);
  const within = new Set(keys.filter(ranged).flatMap(ends));
  const first = (chart.axes ?? []).flat().filter((key) => keys.includes(key));
  const lines = unique([...first, ...keys])
    .filter((key) => !within.has(key) && !chart.name.includes(key))
    .slice(0, 18)
    .map((key) => {
      const range = ranged(key)
        ? ` (${ends(key)
            .map((end) => written(table, end, row))
            .join(" to ")})`
        : "";
      return `${table.by_key[key].header}: ${(written(table, key, row) + range).slice(0, 90)}`;
    });
  return [called(table, row, chart.name), ...lines].join("\n");
}

// ---- one tooltip for everything: under the pointer, at what has the focus, gone with Escape
const tip = document.getElementById("tip");
const told = (node) =>
  node?.dataset.tip ??
  (node?.dataset.row === undefined ? null : data.charts[node.closest("figure").id].describe(node));
function tell(node) {
  document.querySelector("[aria-describedby=tip]")?.removeAttribute("aria-describedby");
  const text = told(node);
  tip.hidden = !text;
  if (!text) return;
  const [title, ...lines] = text.split("\n");
  tip.replaceChildren(
    el("strong", {}, title),
    el(
      "dl",
      {},
      lines.map((line) => {
        const at = line.indexOf(": ");
        return [el("dt", {}, line.slice(0, at)), el("dd", {}, line.slice(at + 2))];
      }),
    ),
  );
  node.setAttribute("aria-describedby", "tip");
  const [at, size] = [node.getBoundingClientRect(), tip.getBoundingClientRect()];
  const x = Math.min(
    at.left + at.width / 2 - size.width / 2,
    document.documentElement.clientWidth - size.width - 8,
  );
  const y = at.top - size.height - 10;
  tip.style.left = `${Math.max(8, x) + window.scrollX}px`;
  tip.style.top = `${(y > 4 ? y : at.bottom + 10) + window.scrollY}px`;
}
const TOLD = `${MARKS},[data-tip]`;
for (const event of ["mouseover", "focusin"])
  document.addEventListener(event, ({ target }) => tell(target.closest?.(TOLD)));
document.addEventListener("focusout", () => tell(null));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return tell(null);
  const mark = event.target.closest?.(MARKS);
  if (!mark) return;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step) {
    const marks = [...mark.closest("svg").querySelectorAll(MARKS)].filter(
      (each) => !each.closest("[hidden]"),
    );
    const next = marks[(marks.indexOf(mark) + step + marks.length) % marks.length];
    mark.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  } else if (event.key === "Enter" || event.key === " ") choose(mark);
  else return;
  event.preventDefault();
});
document.addEventListener("click", ({ target }) => choose(target.closest?.(MARKS)));
function choose(mark) {
  if (mark && data.charts[mark.closest("figure").id].choose) pick(Number(mark.dataset.row));
}

// ---- charts
function chartOf(figure, chart) {
  const table = data.tables[chart.table];
  const tied = table ? [...figure.querySelectorAll("[data-row]")] : [];
  const [result, legend] = [figure.querySelector(".note"), figure.querySelector(".legend")];
  const drawings = [...figure.querySelectorAll(".drawing")];
  const chosen = drawings[0].dataset.choice.split(" ");
  const text = (row, key) => (has(row[key]) ? FORMATS.text(row[key]) : "");
  chart.describe = (mark) =>
    table ? described(chart, table.rows[mark.dataset.row]) : mark.getAttribute("aria-label");

  const colour = (by) => {
    const groups = unique(table.rows.map((row) => text(row, by)));
    for (const mark of tied) {
      const i = groups.indexOf(text(table.rows[mark.dataset.row], by));
      const ink = `var(--${COLOURS[i % COLOURS.length]})`;
      if (mark.tagName === "use") {
        mark.setAttribute("href", mark.getAttribute("href").replace(/\d+$/, i % SHAPES));
        mark.setAttribute("fill", ink);
      } else if (mark.tagName === "path") mark.setAttribute("stroke", ink);
    }
    legend.replaceChildren(
      ...(groups.length > 1 ? groups : []).map((name, i) =>
        el(
          "span",
          {},
          svg(
            "svg",
            { class: "swatch", viewBox: "-5 -5 10 10", "aria-hidden": "true" },
            svg("use", {
              href: `#shape-${i % SHAPES}`,
              fill: `var(--${COLOURS[i % COLOURS.length]})`,
            }),
          ),
          `${table.by_key[by].kind === "text" ? "" : `${table.by_key[by].header} `}${name || "(none)"}`,
        ),
      ),
      chart.fits ? "Pale marks do not fit." : "",
      chart.compared ? "Grey: within 20 % of the measured." : "",
    );
  };

  function update() {
    for (const { dataset, value } of figure.querySelectorAll("[data-axis]"))
      chosen[dataset.axis] = value;
    for (const drawing of drawings) drawing.hidden = drawing.dataset.choice !== chosen.join(" ");
    const drawing = drawings.find((each) => !each.hidden);
    if (table) {
      const wanted = [...figure.querySelectorAll("[data-filter]")];
      const kept = table.rows.map((row) =>
        wanted.every(({ dataset, value }) => !value || text(row, dataset.filter) === value),
      );
      for (const mark of tied) mark.toggleAttribute("hidden", !kept[mark.dataset.row]);
      const rows = unique(
        [...(drawing?.querySelectorAll(MARKS) ?? [])].map((mark) => Number(mark.dataset.row)),
      )
        .filter((i) => kept[i])
        .map((i) => table.rows[i]);
      result.textContent = chart.compared
        ? errors(rows, table)
        : `${rows.length} of ${table.rows.length} rows.`;
      const by = figure.querySelector("[data-by]")?.value ?? chart.by?.[0];
      if (by) colour(by);
    }
    for (const input of figure.querySelectorAll("fieldset input"))
      for (const part of figure.querySelectorAll("[data-of]"))
        if (part.dataset.of.split("-")[0] === input.value)
          part.toggleAttribute("hidden", !input.checked);
    for (const each of drawings) {
      const first = [...each.querySelectorAll(MARKS)].find((mark) => !mark.closest("svg [hidden]"));
      for (const mark of each.querySelectorAll(MARKS))
        mark.setAttribute("tabindex", mark === first ? 0 : -1);
    }
  }
  for (const mark of figure.querySelectorAll(MARKS)) {
    mark.setAttribute("role", chart.choose ? "button" : "img");
    if (table)
      mark.setAttribute("aria-label", called(table, table.rows[mark.dataset.row], chart.name));
    else mark.dataset.tip = mark.getAttribute("aria-label");
  }
  figure.addEventListener("change", update);
  update();
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
function errors(rows, table) {
  if (!rows.length) return "No row is left.";
  const ranged = rows.filter((row) => has(row.low) && has(row.high));
  const inside = ranged.filter((row) => row.low <= row.measured && row.measured <= row.high).length;
  const noisy = rows.filter((row) => row.noise_ln > 0);
  return [
    `${rows.length} of ${table.rows.length} runs: off by ${share(median(rows.map((row) => Math.abs(row.ratio - 1))))} in the median`,
    ranged.length ? `, ${share(inside / ranged.length)} inside the predicted range.` : ".",
    noisy.length
      ? ` Noise, where known (${noisy.length}): ${share(median(noisy.map((row) => row.noise_ln)))}; errors there ${share(median(noisy.map((row) => Math.abs(Math.log(row.ratio)))))}.`
      : "",
  ].join("");
}

// ---- tables that sort by a click on a header, filter by words, and are saved as CSV
function saved(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = el("a", { href: url, download: name.replace(/[^\w.-]+/g, "-") });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
// A cell that a spreadsheet would run as a formula gets an apostrophe before it.
function cell(value) {
  let text = has(value) ? String(value) : "";
  if (typeof value !== "number" && /^'*[=+\-@\t\r\n]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function tableOf(parent) {
  const id = parent.dataset.table;
  const table = data.tables[id];
  const columns = table.columns.filter((column) => !column.hidden && !column.aside);
  const heads = [...parent.querySelectorAll("[data-sort]")];
  const [more, wide] = [parent.querySelector(".more"), parent.querySelector(".wider")];
  let [sorted, descending, words, all] = [null, false, [], false];
  const cells = (row) => columns.map(({ key }) => written(table, key, row));
  const chosen = () => {
    const rows = table.rows.filter((row) => {
      const text = words.length ? cells(row).join(" ").toLowerCase() : "";
      return words.every((word) => text.includes(word));
    });
    const compared = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    const order = ({ [sorted]: a }, { [sorted]: b }) =>
      has(a) && has(b) ? (descending ? -1 : 1) * compared(a, b) : has(b) - has(a);
    return sorted === null ? rows : rows.sort(order);
  };
  const line = (row) => {
    const index = id === "cases" ? table.rows.indexOf(row) : null;
    const content = cells(row).map((text, i) => {
      const kind = columns[i].kind === "text" ? (text.length > 40 ? "clip" : null) : "number";
      const button =
        index !== null && i === 0 && el("button", { type: "button", class: "fact" }, text);
      return el("td", { class: kind, title: kind === "clip" ? text : null }, button || text);
    });
    const own =
      index === null
        ? {}
        : { class: index === picked ? "selected" : null, onclick: () => pick(index) };
    return el("tr", own, content);
  };
  function draw() {
    const rows = chosen();
    const visible = all ? rows : rows.slice(0, SHOWN);
    parent.querySelector("tbody").replaceChildren(...visible.map(line));
    parent.querySelector("span").textContent = `${visible.length} of ${table.rows.length} rows`;
    more.hidden = visible.length === rows.length;
  }
  for (const button of heads)
    button.addEventListener("click", () => {
      descending = sorted === button.dataset.sort ? !descending : false;
      sorted = button.dataset.sort;
      for (const head of heads) head.parentNode.setAttribute("aria-sort", "none");
      button.parentNode.setAttribute("aria-sort", descending ? "descending" : "ascending");
      draw();
    });
  parent.querySelector("[data-save]").addEventListener("click", () => {
    const keys = table.columns.filter(({ aside }) => !aside).map(({ key }) => key);
    const lines = [keys, ...chosen().map((row) => keys.map((key) => row[key]))];
    saved(`${table.title}.csv`, `${lines.map((each) => each.map(cell).join(",")).join("\n")}\n`);
  });
  parent.querySelector("input").addEventListener("input", ({ target }) => {
    words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
    draw();
  });
  more.addEventListener("click", () => {
    all = true;
    draw();
  });
  const scroll = parent.querySelector(".scroll");
  new ResizeObserver(() => {
    wide.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }).observe(scroll);
  draw();
  return draw;
}

// ---- the case whose terms are shown, and the sliders of hardware numbers
let picked = data.tables.cases ? 0 : null;
const factors = {}; // hardware number → log2 of what it is multiplied by
const redraws = []; // what shows the case that is picked, or its time after changes
function pick(index) {
  picked = index;
  for (const redraw of redraws) redraw();
}
const cases = data.tables.cases;

function termsOf(section) {
  const which = section.querySelector("select");
  which.addEventListener("change", () => pick(Number(which.value)));
  redraws.push(() => {
    const [about, ...lines] = data.terms[picked];
    which.value = picked;
    section.querySelector("p").textContent = `${which.selectedOptions[0].text}: ${about}`;
    const most = Math.max(...lines.map(([, , , , end]) => end));
    const bar = (start, end, colour) =>
      svg(
        "svg",
        { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", {
          x: (100 * start) / most,
          y: 1,
          height: 8,
          width: Math.max((100 * (end - start)) / most, 0.3),
          fill: `var(--${colour})`,
        }),
      );
    section
      .querySelector("tbody")
      .replaceChildren(
        ...lines.map(([name, what, us, start, end, colour]) =>
          el(
            "tr",
            {},
            el("th", { scope: "row", "data-about": what }, name),
            el("td", { class: "number" }, time(us)),
            el("td", {}, bar(start, end, colour)),
          ),
        ),
      );
  });
}

// Between a number halved, as it is, and doubled, the logarithm of the time is taken as straight on
// either side; several numbers multiply. Null: it does not fit any more.
function effect(i) {
  let log = 0;
  for (const [name, factor] of Object.entries(factors)) {
    const end = (data.effects[i]?.[name] ?? [])[factor < 0 ? 0 : 1];
    if (factor && end === null) return null;
    if (factor && end) log += Math.abs(factor) * Math.log(end / cases.rows[i].time_us);
  }
  return Math.exp(log);
}

function whatIf(section) {
  const known = cases.rows.map((_, i) => i).filter((i) => data.effects[i]);
  const inputs = [...section.querySelectorAll("input")];
  const changed = () => {
    for (const input of inputs) {
      factors[input.dataset.quantity] = Number(input.value);
      const text = `×${(2 ** Number(input.value)).toFixed(2)}`;
      input.setAttribute("aria-valuetext", text);
      input.parentNode.querySelector("output").textContent = text;
    }
    for (const redraw of redraws) redraw();
  };
  section.addEventListener("input", changed);
  section.querySelector("button").addEventListener("click", () => {
    for (const input of inputs) input.value = 0;
    changed();
  });
  const words = document.getElementById("whatif-result");
  redraws.unshift(() => {
    const ratios = known.map(effect);
    const fitting = ratios.filter((ratio) => ratio !== null);
    known.forEach((i, j) => {
      cases.rows[i].after_us = ratios[j] === null ? null : ratios[j] * cases.rows[i].time_us;
    });
    const ends = fitting.length
      ? `times ×${median(fitting).toFixed(2)} in the median, ×${Math.min(...fitting).toFixed(2)} to ×${Math.max(...fitting).toFixed(2)}`
      : "no case fits";
    const lost = ratios.length - fitting.length;
    const mine = cases.rows[picked];
    words.textContent =
      `${known.length} of ${cases.rows.length} cases: ${ends}${lost ? `; ${lost} no longer fit` : ""}.` +
      (data.effects[picked]
        ? ` Selected: ${time(mine.time_us)} → ${shown(mine.after_us, "time")}.`
        : "");
  });
}

// Roofs and marks on log axes move by the logarithm of what they are multiplied by. A level's line
// moves along itself with its ridge point. Clock and units carry what is on the chip.
function moveRoofs() {
  const log = (...names) =>
    names.reduce((sum, name) => sum + (factors[name] ?? 0) * Math.log10(2), 0);
  const carried = { hbm: [], l2: ["clock"], llc: ["clock"], shared: ["clock", "units"] };
  for (const drawing of document.querySelectorAll("#roofline-chart svg[data-decades]")) {
    const [across, up] = drawing.dataset.decades.split(" ").map(Number);
    const top = log("matrix", "clock", "units");
    for (const part of drawing.querySelectorAll("[data-of]")) {
      const [level] = part.dataset.of.split("-");
      const rate = log(`${level}_bandwidth`, ...(carried[level] ?? []));
      const unit = log(part.dataset.of.endsWith("vector") ? "vector" : "matrix", "clock", "units");
      const [x, y] = /predicted|measured|range|end/.test(part.getAttribute("class"))
        ? [0, 0]
        : data.charts["roofline-chart"].levels[level]
          ? [across * (top - rate), part.matches(".foot") ? 0 : -up * top]
          : [0, -up * unit];
      part.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }
    for (const mark of drawing.querySelectorAll("[data-row]")) {
      const slower = data.effects ? (effect(Number(mark.dataset.row)) ?? 1) : 1;
      mark.setAttribute("transform", `translate(0 ${(up * Math.log10(slower)).toFixed(1)})`);
      mark.classList.toggle("selected", Number(mark.dataset.row) === picked);
    }
  }
}

// ---- the page
for (const [id, chart] of Object.entries(data.charts)) chartOf(document.getElementById(id), chart);
for (const parent of document.querySelectorAll("[data-table]")) {
  const draw = tableOf(parent);
  if (parent.dataset.table === "cases") redraws.push(draw);
}
if (data.terms) termsOf(document.getElementById("terms"));
if (data.effects) whatIf(document.getElementById("whatif"));
if (data.charts["roofline-chart"]) redraws.push(moveRoofs);
if (cases) pick(0);
const root = document.documentElement;
document
  .getElementById("contents")
  .append(
    ...[...document.querySelectorAll("main > section")].map((section) =>
      el("li", {}, el("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)),
    ),
  );
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
document.getElementById("print").addEventListener("click", () => window.print());
document
  .getElementById("download-json")
  .addEventListener("click", () => saved("report.json", JSON.stringify(data, null, 1)));
