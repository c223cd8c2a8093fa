// The explorer: sliders choose a case, the list has all devices' times, and the chart the times
// over the first size of those ticked
const explorer = data.explorer;
const numbers = (text) => text.split(",").map((word) => (word ? Number(word) : null));
for (const each of explorer.operators) {
  each.useful = numbers(each.useful);
  for (const times of Object.values(each.times))
    for (const key of ["us", "first", "mfu"]) times[key] = numbers(times[key] ?? "");
}
function explore(section) {
  const [question, search] = section.querySelectorAll("#explorer-operator, #explorer-search");
  const [sliders, answer, list, chart] = section.querySelectorAll("[data-part]");
  const frames = [...chart.querySelectorAll("svg")];
  const untold = "Tick devices to draw their curves.";
  const ticked = new Set();
  let own = false; // whether the user has ticked any
  let at = []; // places of the sliders
  const operator = () => explorer.operators[question.value];
  const size = (name) => operator().sizes.findIndex((each) => each.name === name);
  const chosen = (name) => operator().sizes[size(name)].values[at[size(name)]];
  // A range, its unit once where both ends have the same.
  function between(low, high) {
    const [number, unit] = low.split(" ");
    return `${high.endsWith(` ${unit}`) ? number : low} – ${high}`;
  }
  // What a column shows of a device's answer: its heading, and the text of a cell.
  const COLUMNS = {
    time: ["time", ({ us }) => time(us)],
    token: ["time a token", ({ us }) => time(us)],
    range: ["80 % range", ({ us, range }) => between(...range.map((end) => time(us * end)))],
    rate: ["rate", ({ us, useful }) => (useful ? si((useful / us) * 1e6, "FLOP/s") : "–")],
    tokens: ["tokens/s a device", ({ us }) => si((chosen("batch") / chosen("devices") / us) * 1e6, "")],
    first: ["first token", ({ first }) => si(first, "s")],
    mfu: ["MFU", ({ mfu }) => `${mfu}%`],
    limiter: ["limiter", ({ limiter }) => limiter],
  };
  // A case in an operator's arrays: the first size varies slowest.
  function timed(device, index) {
    const times = operator().times[device];
    const place = operator().sizes.reduce((sum, { values }, i) => sum * values.length + index[i], 0);
    const [us, first, mfu] = ["us", "first", "mfu"].map((key) => times?.[key]?.[place]);
    const limiter = explorer.limiters[times?.limiter[place]];
    return us && { us, first, mfu, limiter, range: times.range, useful: operator().useful[place] };
  }
  const words = () => search.value.toLowerCase().split(/[\s,]+/);
  const matches = (slug) => words().every((word) => slug.includes(word));
  // Devices that have a time for the case, the fastest first.
  const ranked = () =>
    explorer.devices
      .map((slug, i) => ({ slug, i, ...timed(i, at) }))
      .filter(({ us, slug }) => us && matches(slug))
      .sort((a, b) => a.us - b.us);

  function build() {
    at = operator().sizes.map(({ values }) => values.length >> 1);
    const slider = ({ name, values }, i) => {
      const output = el("output", {}, String(values[at[i]]));
      const oninput = ({ target }) => {
        at[i] = Number(target.value);
        output.textContent = target.ariaValueText = String(values[at[i]]);
        draw();
      };
      const range = { type: "range", max: values.length - 1, value: at[i], "data-size": name };
      return el("label", {}, el("span", {}, name), output, el("input", { ...range, oninput }));
    };
    sliders.replaceChildren(...operator().sizes.map(slider));
    if (!own) ticked.clear();
    if (!own) for (const { i } of ranked().slice(0, 5)) ticked.add(i);
    draw();
  }
  // Why devices that have the words in their names are not in the list.
  function lacking() {
    const reasons = {};
    const small = "too little memory or no rate of the type";
    for (const [i, slug] of explorer.devices.entries()) {
      const why = operator().lacking[i] ?? (timed(i, at) ? null : small);
      if (why && matches(slug)) (reasons[why] ??= []).push(slug);
    }
    const lines = Object.entries(reasons).map(([why, slugs]) => el("p", {}, `${why}: ${slugs.join(", ")}`));
    const count = Object.values(reasons).flat().length;
    return count ? [el("details", {}, el("summary", {}, `${count} left out`), lines)] : [];
  }
  function draw() {
    const rows = ranked();
    const [least, most] = [rows[0]?.us, rows.at(-1)?.us];
    const fastest = `devices; the fastest is ${rows[0]?.slug}, ${rows.length && time(least)}.`;
    const sentence = rows.length
      ? `${rows.length} of ${explorer.devices.length} ${fastest}`
      : "No device with these words in its name has a time.";
    answer.replaceChildren(el("p", {}, sentence), ...lacking());
    const cells = operator().columns.map((name) => COLUMNS[name]);
    const heads = ["device", "", ...cells.map(([heading]) => heading)];
    const line = (row) => {
      const { slug, i, us } = row;
      const onchange = ({ target }) => {
        own = true;
        ticked[target.checked ? "add" : "delete"](i);
        drawCurves();
      };
      const tick = el("input", { type: "checkbox", checked: ticked.has(i), onchange });
      const length = 0.02 + (0.98 * Math.log(us / least)) / (Math.log(most / least) || 1);
      return el(
        "tr",
        {},
        el("th", { scope: "row" }, el("label", {}, tick, ` ${slug}`)),
        el("td", {}, bar(0, length, "sky")),
        cells.map(([, text]) => el("td", { class: "number" }, text(row))),
      );
    };
    const header = heads.map((heading) => el("th", { scope: "col" }, heading));
    list.querySelector("thead").replaceChildren(el("tr", {}, header));
    list.querySelector("tbody").replaceChildren(...rows.map(line));
    drawCurves();
  }
  function drawCurves() {
    const [axis] = operator().sizes;
    for (const [i, { parentNode }] of frames.entries()) parentNode.hidden = i !== +question.value;
    const frame = frames[question.value];
    const [across, up, left, low] = frame.dataset.decades.split(" ").map(Number);
    const place = ([x, us]) => [left + across * Math.log10(x), low - up * Math.log10(us)];
    const lines = ranked().filter(({ i }) => ticked.has(i));
    const curves = lines.map(({ i: device }, i) => {
      const points = axis.values
        .map((value, j) => [value, timed(device, [j, ...at.slice(1)])?.us])
        .filter(([, us]) => us)
        .map(place);
      const shapes = points.map(([x, y]) => svg("use", { href: `#shape-${i % SHAPES}`, x, y }));
      const path = svg("path", { d: `M${points.join("L")}`, stroke: ink(i), fill: "none" });
      return [path, svg("g", { fill: ink(i) }, shapes)];
    });
    const ends = [ranked()[0], ranked().at(-1)].map((each) => place([axis.values[at[0]], each?.us ?? 1]));
    const now = { d: `M${ends.join("L")}`, stroke: "var(--grey)", "stroke-dasharray": "1 3" };
    frame.querySelector(".curves")?.remove();
    frame.append(svg("g", { class: "curves" }, svg("path", now), curves));
    const names = lines.map(({ slug }) => slug);
    frame.ariaLabel = `Time over ${axis.name} of ${names.join(", ")}`;
    const words = names.length ? names.map((slug, i) => swatch(i, slug)) : [untold];
    chart.querySelector(".legend").replaceChildren(...words);
  }
  question.addEventListener("change", build);
  search.addEventListener("input", draw);
  build();
}
explore(document.getElementById("explorer"));
