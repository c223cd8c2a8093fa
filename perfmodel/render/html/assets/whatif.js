// Sliders of hardware numbers. Between a number halved, as it is, and doubled, the logarithm of the
// time is taken as straight on either side; several numbers multiply.
page.effect = (one) => {
  const known = page.data.effects[one.key];
  if (!known) return 1;
  let log = 0;
  for (const [name, factor] of Object.entries(page.state.factors)) {
    const [halved, doubled] = known[name] ?? [];
    const end = factor < 0 ? halved : doubled;
    if (factor && end) log += Math.abs(factor) * Math.log(end / one.time_us);
    else if (factor && end === null) return null; // it does not fit any more
  }
  return Math.exp(log);
};

page.after = (one) => {
  const effect = page.effect(one);
  return effect === null ? null : one.time_us * effect;
};

page.whatif = () => {
  const known = page.data.cases.filter((one) => page.data.effects[one.key]);
  if (!known.length) return;
  const moves = (name) =>
    known.some((one) => {
      const ends = page.data.effects[one.key][name] ?? [];
      return ends.some((end) => end === null || Math.abs(Math.log(end / one.time_us)) > 5e-3);
    });
  const names = Object.keys(page.data.quantities).filter(moves);
  const section = page.section("whatif", "What if");
  const said = page.el("p", { "aria-live": "polite", id: "whatif-result" });
  const sliders = names.map((name) => {
    const output = page.el("output", {}, "×1.00");
    const input = page.el("input", {
      type: "range",
      min: -1,
      max: 1,
      step: 0.05,
      value: 0,
      "data-quantity": name,
      oninput: () => {
        page.state.factors[name] = Number(input.value);
        output.textContent = `×${(2 ** Number(input.value)).toFixed(2)}`;
        input.setAttribute("aria-valuetext", output.textContent);
        page.emit("factors");
      },
    });
    page.on("reset", () => {
      input.value = 0;
      output.textContent = "×1.00";
    });
    return page.el("label", {}, page.el("span", {}, page.data.quantities[name]), output, input);
  });
  const tell = () => {
    const ratios = known
      .map((one) => page.after(one))
      .map((after, i) => (after === null ? Infinity : after / known[i].time_us));
    const fitting = ratios.filter(Number.isFinite);
    const lost = ratios.length - fitting.length;
    const one = page.data.cases[page.state.selected];
    const mine =
      one && page.data.effects[one.key]
        ? ` Selected: ${page.time(one.time_us)} → ${page.time(page.after(one))}.`
        : "";
    const middle = fitting.length
      ? `times ×${page.median(fitting).toFixed(2)} in the median, ×${Math.min(...fitting).toFixed(2)} to ×${Math.max(...fitting).toFixed(2)}`
      : "no case fits";
    said.textContent = `${known.length} of ${page.data.cases.length} cases: ${middle}${lost ? `; ${lost} no longer fit` : ""}.${mine}`;
  };
  page.on("factors", tell);
  page.on("select", tell);
  section.append(
    page.el(
      "p",
      { class: "note" },
      "Each number from half to twice what it is. Times are interpolated between the model's own for half, now and twice; several changes are multiplied, which is an estimate.",
    ),
    page.el("div", { class: "sliders" }, sliders),
    page.el(
      "p",
      {},
      page.el(
        "button",
        {
          type: "button",
          onclick: () => {
            page.state.factors = {};
            page.emit("reset");
            page.emit("factors");
          },
        },
        "As it is",
      ),
    ),
    said,
  );
  tell();
};
