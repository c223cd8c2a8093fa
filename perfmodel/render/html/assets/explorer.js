// The explorer: sliders choose a case, the list has all devices' times, and the chart the times
// over the first size of those ticked
const explorer = data.explorer;
function explore(section) {
  const [question, search] = section.querySelectorAll("#explorer-operator, #explorer-search");
  const [sliders, answer, list, curves] = section.querySelectorAll("[data-part]");
  const ticked = new Set();
  let own = false; // whether the user has ticked any
  let at = []; // places of the sliders
  const operator = () => explorer.operators[question.value];
  // A case in an operator's arrays: the first size varies slowest.
  function timed(device, index) {
    const times = operator().times[device];
    const place = operator().sizes.reduce((sum, { values }, i) => sum * values.length + index[i], 0);
    const [us, useful] = [times?.us[place], operator().useful[place]];
    return us && { us, useful, limiter: explorer.limiters[times.limiter[place]] };
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
    for (const [i, why] of Object.entries(operator().lacking ?? {}))
      if (matches(explorer.devices[i])) (reasons[why] ??= []).push(explorer.devices[i]);
    return Object.entries(reasons).map(([why, slugs]) => ` Left out, ${why}: ${slugs.join(", ")}.`);
  }
  function draw() {
    const rows = ranked();
    const [least, most] = [rows[0]?.us, rows.at(-1)?.us];
    const fastest = `devices; the fastest is ${rows[0]?.slug}, ${rows.length && time(least)}.`;
    answer.textContent =
      (rows.length
        ? `${rows.length} of ${explorer.devices.length} ${fastest}`
        : "No device with these words in its name has a time.") + lacking().join("");
    const line = ({ slug, i, us, useful, limiter }) => {
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
        el("td", { class: "number" }, time(us)),
        el("td", {}, bar(0, length, "sky")),
        el("td", { class: "number" }, useful ? si((useful / us) * 1e6, "FLOP/s") : "–"),
        el("td", {}, limiter),
      );
    };
    list.querySelector("tbody").replaceChildren(...rows.map(line));
    drawCurves();
  }
  // A log axis: where a value stands, and round values.
  function logAxis(values, from, to) {
    const [low, high] = [Math.min(...values) / 1.2, Math.max(...values) * 1.2];
    const scale = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
    const powers = Array.from({ length: 24 }, (_, i) => 10 ** (i - 4));
    const parts = high / low < 300 ? [1, 2, 5] : [1];
    const all = powers.flatMap((power) => parts.map((part) => part * power));
    return [scale, all.filter((value) => value > low && value < high)];
  }
  function drawCurves() {
    const axis = operator().sizes[0];
    const lines = ranked()
      .filter(({ i }) => ticked.has(i))
      .map(({ slug, i }) => ({
        slug,
        points: axis.values
          .map((value, j) => [value, timed(i, [j, ...at.slice(1)])?.us])
          .filter(([, us]) => us),
      }));
    curves.replaceChildren(el("p", { class: "note" }, "Tick devices to draw their curves."));
    if (!lines.length) return;
    const every = lines.flatMap(({ points }) => points);
    const [x, across] = logAxis(every.map(([value]) => value), 56, 550);
    const [y, up] = logAxis(every.map(([, us]) => us), 300, 22);
    const text = (words, left, top, anchor) =>
      svg("text", { x: left, y: top, "text-anchor": anchor }, words);
    const now = x(axis.values[at[0]]);
    const grid = [...across.map((v) => `M${x(v)},22V300`), ...up.map((v) => `M56,${y(v)}H550`)];
    const label = `Time over ${axis.name} of ${lines.map(({ slug }) => slug).join(", ")}`;
    const picture = svg(
      "svg",
      { viewBox: "0 0 560 336", role: "img", "aria-label": label },
      svg("path", { class: "grid", d: grid.join("") }),
      svg("path", { d: `M${now},22V300`, stroke: "var(--grey)", "stroke-dasharray": "1 3" }),
      across.map((value) => text(String(value), x(value), 315, "middle")),
      up.map((value) => text(time(value).replace(/\.0+/, ""), 50, y(value) + 4, "end")),
      text(axis.name, 303, 332, "middle"),
      text("time", 50, 13, "end"),
      lines.map(({ points }, i) => [
        svg("path", { d: `M${points.map(([v, us]) => [x(v), y(us)]).join("L")}`, stroke: ink(i) }),
        points.map(([v, us]) =>
          svg("use", { href: `#shape-${i % SHAPES}`, fill: ink(i), x: x(v), y: y(us) }),
        ),
      ]),
    );
    const names = lines.map(({ slug }, i) => swatch(i, slug));
    curves.replaceChildren(picture, el("p", { class: "legend" }, names));
  }
  question.addEventListener("change", build);
  search.addEventListener("input", draw);
  build();
}
explore(document.getElementById("explorer"));
