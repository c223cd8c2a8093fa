// All devices over a grid of sizes: sliders choose a case, the list has all devices' times, and the
// chart the times over the first size. It is drawn here, for its sliders redraw it.
const explorer = data.explorer;
const explorerSection = document.getElementById("explorer");
const ticked = new Set(); // devices whose curves are drawn
let own = false; // whether the user has ticked any
let at = []; // places of the sliders

const question = el(
  "label",
  {},
  "Operator ",
  el(
    "select",
    { id: "explorer-operator", onchange: () => build() },
    explorer.operators.map(({ title }, i) => el("option", { value: i }, title)),
  ),
);
const search = el("input", { type: "search", id: "explorer-search", oninput: () => draw() });
const sizes = el("div", { class: "sliders" });
const answer = el("p", { "aria-live": "polite", id: "explorer-result" });
const list = el("div");
const curves = el("div", { class: "wide", id: "explorer-chart" });
explorerSection.append(
  el("div", { class: "controls" }, question, el("label", {}, "Devices with ", search)),
  sizes,
  answer,
  el("div", { class: "two" }, list, curves),
  el("p", { class: "note" }, `${explorer.note} The bars are on a log scale.`),
);

const operator = () => explorer.operators[question.querySelector("select").value];
// Place of a case in an operator's arrays: the first size varies slowest.
const place = (index) =>
  operator().sizes.reduce((sum, size, i) => sum * size.values.length + index[i], 0);
const timed = (device, index) => {
  const times = operator().times[device];
  const us = times?.us[place(index)];
  return us ? { us, limiter: explorer.limiters[times.limiter[place(index)]] } : null;
};
const matches = (slug) =>
  search.value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((word) => slug.includes(word));
// Devices that have a time for the case, the fastest first.
const ranked = () =>
  explorer.devices
    .map((slug, i) => ({ slug, i, ...timed(i, at) }))
    .filter((row) => row.us && matches(row.slug))
    .sort((a, b) => a.us - b.us);

function build() {
  at = operator().sizes.map((size) => size.values.length >> 1);
  sizes.replaceChildren(
    ...operator().sizes.map((size, i) => {
      const output = el("output", {}, String(size.values[at[i]]));
      const input = el("input", {
        type: "range",
        min: 0,
        max: size.values.length - 1,
        value: at[i],
        "data-size": size.name,
        "aria-valuetext": output.textContent,
        oninput: () => {
          at[i] = Number(input.value);
          output.textContent = String(size.values[at[i]]);
          input.setAttribute("aria-valuetext", output.textContent);
          draw();
        },
      });
      return el("label", {}, el("span", {}, size.name), output, input);
    }),
  );
  if (!own) {
    ticked.clear();
    for (const row of ranked().slice(0, 5)) ticked.add(row.i);
  }
  draw();
}

// Why devices that have the words in their names are not in the list.
function lacking() {
  const reasons = new Map();
  for (const [i, reason] of Object.entries(operator().lacking ?? {}))
    if (matches(explorer.devices[i]))
      reasons.set(reason, [...(reasons.get(reason) ?? []), explorer.devices[i]]);
  return [...reasons]
    .map(([reason, slugs]) => ` Left out, ${reason}: ${slugs.join(", ")}.`)
    .join("");
}

function draw() {
  const rows = ranked();
  const useful = operator().useful[place(at)];
  answer.textContent = rows.length
    ? `${rows.length} of ${explorer.devices.length} devices; the fastest is ${rows[0].slug}, ${time(rows[0].us)}.${lacking()}`
    : `No device with these words in its name has a time.${lacking()}`;
  const [least, most] = [rows[0]?.us, rows.at(-1)?.us];
  const line = (row) => {
    const length = 2 + (96 * Math.log(row.us / least)) / (Math.log(most / least) || 1);
    const tick = el("input", {
      type: "checkbox",
      checked: ticked.has(row.i),
      "aria-label": `draw ${row.slug}`,
      onchange: ({ target }) => {
        own = true;
        if (target.checked) ticked.add(row.i);
        else ticked.delete(row.i);
        drawCurves();
      },
    });
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, el("label", {}, tick, ` ${row.slug}`)),
      el("td", { class: "number" }, time(row.us)),
      el(
        "td",
        {},
        svg(
          "svg",
          { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
          svg("path", { d: `M0,4.5H${length}V1h1.5V9h-1.5V5.5H0Z`, fill: "var(--sky)" }),
        ),
      ),
      el("td", { class: "number" }, useful ? si((useful / row.us) * 1e6, "FLOP/s") : "–"),
      el("td", {}, row.limiter),
    );
  };
  const caption = "Devices by time: time, time on a log scale, rate and limiter";
  list.replaceChildren(
    el(
      "div",
      { class: "scroll rows", tabindex: 0, role: "region", "aria-label": "Devices by time" },
      el(
        "table",
        { class: "terms explorer" },
        el("caption", { class: "hidden-text" }, caption),
        el(
          "colgroup",
          {},
          ["name", "value", "bar", "rate", "limiter"].map((name) => el("col", { class: name })),
        ),
        el("tbody", {}, rows.map(line)),
      ),
    ),
  );
  drawCurves();
}

// A log axis: where a value stands, and round values with room between them.
function logAxis(values, from, to, pad) {
  const [low, high] = [Math.min(...values) / pad, Math.max(...values) * pad];
  const scale = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
    powers.push(10 ** power, ...(high / low < 300 ? [2 * 10 ** power, 5 * 10 ** power] : []));
  scale.ticks = powers.filter((value) => value >= low && value <= high);
  return scale;
}

// Time over the first size, of the devices ticked; names stand at the right, in the order of the
// curves' ends, each with a line to its end.
function drawCurves() {
  const chosen = ranked().filter((row) => ticked.has(row.i));
  const axis = operator().sizes[0];
  const lines = chosen.map((row) =>
    axis.values
      .map((value, i) => [value, timed(row.i, [i, ...at.slice(1)])?.us])
      .filter(([, us]) => us),
  );
  if (!lines.some((line) => line.length)) {
    curves.replaceChildren(el("p", { class: "note" }, "Tick devices to draw their curves."));
    return;
  }
  const [width, height, names] = [
    560,
    340,
    8.2 * Math.max(...chosen.map((row) => row.slug.length)) + 20,
  ];
  const box = { left: 56, top: 22, right: width - names, bottom: height - 40 };
  const x = logAxis(
    lines.flat().map(([value]) => value),
    box.left,
    box.right,
    1.1,
  );
  const y = logAxis(
    lines.flat().map(([, us]) => us),
    box.bottom,
    box.top,
    1.5,
  );
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `Time over ${axis.name} of ${chosen.map((row) => row.slug).join(", ")}`,
  });
  const text = (words, place, attributes = {}) => svg("text", { ...place, ...attributes }, words);
  const grid = [
    ...x.ticks.map((value) => `M${x(value)},${box.top}V${box.bottom}`),
    ...y.ticks.map((value) => `M${box.left},${y(value)}H${box.right}`),
  ];
  const now = x(axis.values[at[0]]);
  picture.append(
    svg("path", { class: "grid", d: grid.join("") }),
    svg("path", {
      d: `M${now},${box.top}V${box.bottom}`,
      stroke: "var(--grey)",
      "stroke-dasharray": "1 3",
    }),
    svg(
      "g",
      { class: "axis", "text-anchor": "middle" },
      x.ticks.map((value) => text(FORMATS.number(value), { x: x(value), y: box.bottom + 15 })),
      text(axis.name, { x: (box.left + box.right) / 2, y: box.bottom + 32 }),
    ),
    svg(
      "g",
      { class: "axis", "text-anchor": "end" },
      y.ticks.map((value) =>
        text(time(value).replace(/\.0+ /, " "), { x: box.left - 6, y: y(value) + 4 }),
      ),
      text("time", { x: box.left, y: box.top - 9 }),
    ),
  );
  const ends = [];
  lines.forEach((line, i) => {
    const ink = `var(--${COLOURS[i % COLOURS.length]})`;
    const points = line.map(([value, us]) => [x(value), y(us)]);
    picture.append(
      svg("path", { d: `M${points.join("L")}`, fill: "none", stroke: ink, "stroke-width": 1.5 }),
      ...points.map(([left, top]) =>
        svg("use", { href: `#shape-${i % SHAPES}`, fill: ink, x: left, y: top }),
      ),
    );
    if (points.length)
      ends.push({ slug: chosen[i].slug, ink, left: points.at(-1)[0], top: points.at(-1)[1] });
  });
  // Names are pushed apart by a line of text, first down, then up.
  ends.sort((a, b) => a.top - b.top);
  const room = Math.min(15, (box.bottom - box.top) / ends.length);
  let [least, most] = [box.top, box.bottom];
  for (const end of ends) least = (end.y = Math.max(end.top, least)) + room;
  for (const end of [...ends].reverse()) most = (end.y = Math.min(end.y, most)) - room;
  for (const end of ends)
    picture.append(
      svg("path", {
        d: `M${end.left + 5},${end.top}L${box.right + 12},${end.y}`,
        stroke: end.ink,
        opacity: 0.5,
      }),
      text(end.slug, { x: box.right + 15, y: end.y + 4 }, { fill: end.ink, "data-label": "" }),
    );
  curves.replaceChildren(picture);
}
build();
