// The page's charts are drawn and its numbers written; this script tells marks' rows, filters,
// colours and moves marks, and makes the tables. Text is only ever set as text: nothing of the data
// is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["blue", "vermilion", "green", "ochre", "purple", "sky", "ink", "grey"];
const SHAPES = 9;
const MARKS = ["dots", "pale", "piece", "predicted", "measured"]
  .map((name) => `.${name} [data-row]`)
  .join();
const SHOWN = 200; // rows of a table at first; the rest follows when it is asked for

const has = (value) => value !== null && value !== undefined && value !== "";
const ink = (i) => `var(--${COLOURS[i % COLOURS.length]})`;
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (has(value) && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(has));
  return node;
}
const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
const share = (value) => `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)}%`;
// Only what a slider changes is written here; all else comes with its text.
function si(value, unit) {
  const power = Math.floor(Math.log10(value * (1 + 5e-4)) / 3);
  const digits = value / 1000 ** power;
  return `${digits.toPrecision(3)} ${"nµm kMGTPE"[power + 3].trim()}${unit}`;
}
const time = (us) => si(us / 1e6, "s");
// A part of a length: where it begins and ends, in shares of the whole.
function bar(start, end, colour) {
  const piece = el("i");
  Object.assign(piece.style, {
    marginLeft: `${100 * start}%`,
    width: `${Math.max(100 * (end - start), 0.3)}%`,
    background: `var(--${colour})`,
  });
  return el("div", { class: "bar", "aria-hidden": "true" }, piece);
}

// ---- rows, with the values and the texts of their cells
for (const table of Object.values(data.tables)) {
  table.texts = table.texts.map((line) => line.split("|"));
  for (const [j, { all }] of table.columns.entries())
    for (const i of all ? table.rows.keys() : []) {
      table.rows[i].splice(j, 0, all[0]);
      table.texts[i].splice(j, 0, all[1]);
    }
  table.place = (key) => table.columns.findIndex((column) => column.key === key);
  table.value = (i, key) => table.rows[i][table.place(key)];
  table.text = (i, j) => table.texts[i][j] || String(table.rows[i][j] ?? "");
  table.named = (text, j) => (table.columns[j].number ? `${table.columns[j].header} ` : "") + text;
  table.called = (i, places) =>
    places
      .filter((j) => table.text(i, j))
      .map((j) => table.named(table.text(i, j), j))
      .join(", ");
}
// A row in lines: its name, then its numbers, ranges behind their values.
function described({ table: id, name, tells }, i) {
  const table = data.tables[id];
  const lines = tells
    .filter(([j]) => table.text(i, j))
    .slice(0, 18)
    .map(([j, ...ends]) => {
      const texts = ends.map((end) => table.text(i, end)).filter(has);
      const range = texts.length === 2 ? ` (${texts.join(" to ")})` : "";
      return `${table.columns[j].header}: ${(table.text(i, j) + range).slice(0, 90)}`;
    });
  return [table.called(i, name), ...lines].join("\n");
}

// ---- one tooltip for everything: under the pointer, at what has the focus, gone with Escape
const tip = document.getElementById("tip");
function tell(node) {
  document.querySelector("[aria-describedby=tip]")?.removeAttribute("aria-describedby");
  const chart = data.charts[node?.closest("figure")?.id];
  tip.hidden = !node;
  if (!node) return;
  const text = chart.table ? described(chart, node.dataset.row) : node.ariaLabel;
  const [title, ...lines] = text.split("\n");
  const pairs = lines.map((line) => line.split(/: (.*)/s));
  const list = pairs.map(([term, words]) => [el("dt", {}, term), el("dd", {}, words)]);
  tip.replaceChildren(el("strong", {}, title), el("dl", {}, list));
  node.setAttribute("aria-describedby", "tip");
  const [at, size] = [node.getBoundingClientRect(), tip.getBoundingClientRect()];
  const most = document.documentElement.clientWidth - size.width - 8;
  const x = Math.max(8, Math.min(at.left + (at.width - size.width) / 2, most));
  const y = at.top - size.height - 10;
  tip.style.left = `${x + window.scrollX}px`;
  tip.style.top = `${(y > 4 ? y : at.bottom + 10) + window.scrollY}px`;
}
for (const event of ["mouseover", "focusin"])
  document.addEventListener(event, ({ target }) => tell(target.closest?.(MARKS)));
document.addEventListener("focusout", () => tell(null));
const choose = (mark) => {
  if (data.charts[mark?.closest("figure").id]?.choose) pick(Number(mark.dataset.row));
};
document.addEventListener("click", ({ target }) => choose(target.closest?.(MARKS)));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tell(null);
  const mark = event.target.closest?.(MARKS);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (mark && step) {
    const marks = [...mark.closest("svg").querySelectorAll(MARKS)];
    const visible = marks.filter((each) => !each.closest("[hidden]"));
    const next = visible.at((visible.indexOf(mark) + step) % visible.length);
    mark.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  } else if (mark && ["Enter", " "].includes(event.key)) choose(mark);
  else return;
  event.preventDefault();
});

// ---- charts
const swatch = (i, words) => {
  const box = { class: "swatch", viewBox: "-5 -5 10 10", "aria-hidden": "true" };
  const shape = svg("use", { href: `#shape-${i % SHAPES}`, fill: ink(i) });
  return el("span", {}, svg("svg", box, shape), words);
};
function chartOf(figure, chart) {
  const table = data.tables[chart.table];
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const [marks, drawings] = [all("[data-row]"), all(".drawing")];
  const [result, legend] = [figure.querySelector(".note"), figure.querySelector(".legend")];
  const chosen = drawings[0].dataset.choice.split(" ");

  function colour(by) {
    const j = table.place(by);
    const groups = [...new Set(table.rows.map((_, i) => table.text(i, j)))];
    for (const mark of marks) {
      const i = groups.indexOf(table.text(mark.dataset.row, j));
      if (mark.tagName === "use") {
        mark.setAttribute("href", `#shape-${i % SHAPES}`);
        mark.setAttribute("fill", ink(i));
      } else if (mark.tagName === "path") mark.setAttribute("stroke", ink(i));
    }
    const named = (name, i) => swatch(i, table.named(name || "(none)", j));
    legend.replaceChildren(
      ...(groups.length > 1 ? groups.map(named) : []),
      chart.fits ? "Pale marks do not fit." : "",
      chart.compared ? "Grey: within 20 % of the measured." : "",
    );
  }
  function update() {
    for (const { dataset, value } of all("[data-axis]")) chosen[dataset.axis] = value;
    for (const drawing of drawings) drawing.hidden = drawing.dataset.choice !== chosen.join(" ");
    if (table) {
      const filters = all("[data-filter]")
        .filter(({ value }) => value)
        .map(({ dataset, value }) => [table.place(dataset.filter), value]);
      const kept = table.rows.map((_, i) =>
        filters.every(([j, value]) => table.text(i, j) === value),
      );
      for (const mark of marks) mark.toggleAttribute("hidden", !kept[mark.dataset.row]);
      const visible = drawings.find((each) => !each.hidden)?.querySelectorAll(MARKS) ?? [];
      const rows = [...new Set([...visible].map((mark) => mark.dataset.row))].filter((i) => kept[i]);
      result.textContent = chart.compared
        ? errors(rows, table)
        : `${rows.length} of ${table.rows.length} rows.`;
      const by = figure.querySelector("[data-by]")?.value ?? chart.by?.[0];
      if (by) colour(by);
    }
    for (const { value, checked } of all("fieldset input"))
      for (const part of all("[data-of]"))
        if (part.dataset.of.split("-")[0] === value) part.toggleAttribute("hidden", !checked);
    for (const drawing of drawings) {
      const each = [...drawing.querySelectorAll(MARKS)];
      const first = each.find((mark) => !mark.closest("svg [hidden]"));
      for (const mark of each) mark.setAttribute("tabindex", mark === first ? 0 : -1);
    }
  }
  for (const mark of figure.querySelectorAll(MARKS)) {
    mark.setAttribute("role", chart.choose ? "button" : "img");
    if (table) mark.setAttribute("aria-label", table.called(mark.dataset.row, chart.name));
  }
  figure.addEventListener("change", update);
  update();
}
function errors(rows, table) {
  if (!rows.length) return "No row is left.";
  const of = (key) => rows.map((i) => table.value(i, key));
  const [ratios, measured, low, high, noise] = ["ratio", "measured", "low", "high", "noise_ln"].map(of);
  const ranged = rows.map((_, j) => j).filter((j) => has(low[j]) && has(high[j]));
  const inside = ranged.filter((j) => low[j] <= measured[j] && measured[j] <= high[j]).length;
  const noisy = rows.map((_, j) => j).filter((j) => noise[j] > 0);
  const off = share(median(ratios.map((ratio) => Math.abs(ratio - 1))));
  const spread = noisy.length && share(median(noisy.map((j) => noise[j])));
  const there = noisy.length && share(median(noisy.map((j) => Math.abs(Math.log(ratios[j])))));
  return (
    `${rows.length} of ${table.rows.length} runs: off by ${off} in the median` +
    (ranged.length ? `, ${share(inside / ranged.length)} inside the predicted range.` : ".") +
    (spread ? ` Noise, where known (${noisy.length}): ${spread}; errors there ${there}.` : "")
  );
}

// ---- tables that sort by a click on a header, filter by words, and are saved as CSV
function saved(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  el("a", { href: url, download: name.replace(/[^\w.-]+/g, "-") }).click();
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
  const columns = table.columns.filter(({ hidden, aside }) => !hidden && !aside);
  const find = (selector) => parent.querySelector(selector);
  const [more, scroll] = [find(".more"), find(".scroll")];
  let [sorted, descending, words, all] = [null, false, [], false];
  const places = columns.map(({ key }) => table.place(key));
  const texts = (i) => places.map((j) => table.text(i, j) || "–");
  const compared = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b)));
  function order(i, j) {
    const [a, b] = [i, j].map((row) => table.rows[row][sorted]);
    return has(a) && has(b) ? (descending ? -1 : 1) * compared(a, b) : has(b) - has(a);
  }
  function chosen() {
    const matches = (i) => {
      const text = words.length ? texts(i).join(" ").toLowerCase() : "";
      return words.every((word) => text.includes(word));
    };
    const rows = table.rows.map((_, i) => i).filter(matches);
    return sorted === null ? rows : rows.sort(order);
  }
  function line(i) {
    const chooses = id === "cases" && { class: i === picked && "selected", onclick: () => pick(i) };
    const content = texts(i).map((text, j) => {
      const kind = columns[j].number ? "number" : text.length > 40 && "long";
      const button = chooses && !j && el("button", { type: "button", class: "fact" }, text);
      return el("td", { class: kind }, button || text);
    });
    return el("tr", chooses || {}, content);
  }
  function draw() {
    const rows = chosen();
    const visible = all ? rows : rows.slice(0, SHOWN);
    find("tbody").replaceChildren(...visible.map(line));
    find("span").textContent = `${visible.length} of ${table.rows.length} rows`;
    more.hidden = visible.length === rows.length;
  }
  parent.addEventListener("click", ({ target }) => {
    const { sort, save } = target.dataset;
    if (sort) {
      const place = table.place(sort);
      descending = sorted === place && !descending;
      sorted = place;
      for (const head of parent.querySelectorAll("th")) head.ariaSort = "none";
      target.parentNode.ariaSort = descending ? "descending" : "ascending";
    } else if (save !== undefined) {
      const kept = table.columns.filter(({ aside }) => !aside).map(({ key }) => key);
      const lines = chosen().map((i) => kept.map((key) => table.value(i, key)));
      saved(`${table.title}.csv`, [kept, ...lines].map((e) => `${e.map(cell).join(",")}\n`).join(""));
    } else if (target === more) all = true;
    else return;
    draw();
  });
  find("input").addEventListener("input", ({ target }) => {
    words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
    draw();
  });
  new ResizeObserver(() => {
    find(".wider").hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }).observe(scroll);
  draw();
  if (id === "cases") redraws.push(draw);
}

// ---- the case whose terms are shown, and the sliders of hardware numbers
const cases = data.tables.cases;
let picked = 0;
const factors = {}; // hardware number → log2 of what it is multiplied by
const redraws = []; // what shows the case that is picked, or its time after changes
function pick(index) {
  picked = index;
  for (const redraw of redraws) redraw();
}
function termsOf(section) {
  const which = section.querySelector("select");
  which.addEventListener("change", () => pick(Number(which.value)));
  redraws.push(() => {
    const [about, ...lines] = data.terms[picked];
    which.value = picked;
    section.querySelector("p").textContent = `${which.selectedOptions[0].text}: ${about}`;
    const most = Math.max(...lines.map(([, , , , end]) => end));
    const line = ([name, what, words, start, end, colour]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", "data-about": what }, name),
        el("td", { class: "number" }, words),
        el("td", {}, bar(start / most, end / most, colour)),
      );
    section.querySelector("tbody").replaceChildren(...lines.map(line));
  });
}
// Between a number halved, as it is, and doubled, the logarithm of the time is taken as straight on
// either side; several numbers multiply. Null: it does not fit any more.
function effect(i) {
  let log = 0;
  for (const [name, factor] of Object.entries(factors)) {
    const end = data.effects?.[i]?.[name]?.[factor < 0 ? 0 : 1];
    if (factor && end === null) return null;
    if (factor && end) log += Math.abs(factor) * Math.log(end / cases.value(i, "time_us"));
  }
  return Math.exp(log);
}
function whatIf(section) {
  const known = cases.rows.map((_, i) => i).filter((i) => data.effects[i]);
  const inputs = [...section.querySelectorAll("input")];
  const [before, after] = ["time_us", "after_us"].map(cases.place);
  function changed() {
    for (const input of inputs) {
      factors[input.dataset.quantity] = Number(input.value);
      const text = `×${(2 ** input.value).toFixed(2)}`;
      input.setAttribute("aria-valuetext", text);
      input.previousElementSibling.textContent = text;
    }
    pick(picked);
  }
  section.addEventListener("input", changed);
  section.querySelector("button").addEventListener("click", () => {
    for (const input of inputs) input.value = 0;
    changed();
  });
  redraws.unshift(() => {
    const ratios = known.map(effect);
    const fitting = ratios.filter((ratio) => ratio !== null);
    known.forEach((i, j) => {
      const us = ratios[j] === null ? null : ratios[j] * cases.value(i, "time_us");
      cases.rows[i][after] = us;
      cases.texts[i][after] = us && time(us);
    });
    const [least, most] = [Math.min(...fitting), Math.max(...fitting)].map((x) => x.toFixed(2));
    const middle = fitting.length && median(fitting).toFixed(2);
    const ends = middle ? `times ×${middle} in the median, ×${least} to ×${most}` : "no case fits";
    const lost = ratios.length - fitting.length;
    const times = [before, after].map((place) => cases.text(picked, place) || "–");
    document.getElementById("whatif-result").textContent =
      `${known.length} of ${cases.rows.length} cases: ${ends}${lost ? `; ${lost} no longer fit` : ""}.` +
      (data.effects[picked] ? ` Selected: ${times.join(" → ")}.` : "");
  });
}
// Roofs and marks on log axes move by the logarithm of what they are multiplied by. A level's line
// moves along itself with its ridge point. Clock and units carry what is on the chip.
function moveRoofs() {
  const log = (...names) =>
    names.reduce((sum, name) => sum + (factors[name] ?? 0) * Math.log10(2), 0);
  const carried = { l2: ["clock"], llc: ["clock"], shared: ["clock", "units"] };
  const move = (node, x, y) =>
    node.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  for (const drawing of document.querySelectorAll("#roofline-chart svg[data-decades]")) {
    const [across, up] = drawing.dataset.decades.split(" ").map(Number);
    const top = log("matrix", "clock", "units");
    for (const part of drawing.querySelectorAll("[data-of]")) {
      const [level] = part.dataset.of.split("-");
      const rate = log(`${level}_bandwidth`, ...(carried[level] ?? []));
      const unit = log(part.dataset.of.endsWith("vector") ? "vector" : "matrix", "clock", "units");
      if (part.matches(".predicted, .measured, .range")) continue;
      if (!data.charts["roofline-chart"].levels[level]) move(part, 0, -up * unit);
      else move(part, across * (top - rate), part.matches(".foot") ? 0 : -up * top);
    }
    for (const mark of drawing.querySelectorAll("[data-row]")) {
      move(mark, 0, up * Math.log10(effect(mark.dataset.row) ?? 1));
      mark.classList.toggle("selected", Number(mark.dataset.row) === picked);
    }
  }
}

// ---- the page
for (const [id, chart] of Object.entries(data.charts)) chartOf(document.getElementById(id), chart);
for (const parent of document.querySelectorAll("[data-table]")) tableOf(parent);
if (data.terms) termsOf(document.getElementById("terms"));
if (data.effects) whatIf(document.getElementById("whatif"));
if (data.charts["roofline-chart"]) redraws.push(moveRoofs);
if (cases) pick(0);
for (const { id, firstElementChild } of document.querySelectorAll("main > section"))
  document
    .getElementById("contents")
    .append(el("li", {}, el("a", { href: `#${id}` }, firstElementChild.textContent)));
document.getElementById("theme").addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const light = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
  dataset.theme = (dataset.theme ?? light) === "light" ? "dark" : "light";
});
document.getElementById("print").addEventListener("click", () => window.print());
document
  .getElementById("download-json")
  .addEventListener("click", () => saved("report.json", JSON.stringify(data, null, 1)));
