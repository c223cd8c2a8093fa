// The devices and where each of their numbers comes from.
page.devices = () => {
  const found = Object.entries(page.data.devices);
  const unknown = page.data.unknown_devices;
  if (!found.length && !unknown.length) return;
  const section = page.section("devices", "Devices");
  section.append(
    page.el(
      "div",
      { class: "cards" },
      found.map(([slug, device]) =>
        page.el(
          "div",
          { class: "card" },
          page.el("strong", {}, device.name),
          " ",
          page.el("span", { class: "note" }, slug),
          page.el(
            "dl",
            {},
            device.facts.map((fact) => {
              const button = page.el("button", { type: "button", class: "fact" }, fact.value);
              page.tip.on(button, () => [
                `${fact.label}: ${fact.value}`,
                [
                  ["known", fact.status],
                  ...(fact.note ? [["note", fact.note]] : []),
                  ...fact.sources.map((source) => ["source", source]),
                ],
              ]);
              return [page.el("dt", {}, fact.label), page.el("dd", {}, button)];
            }),
          ),
        ),
      ),
    ),
  );
  if (unknown.length) {
    section.append(
      page.el(
        "p",
        { class: "note" },
        `Without a spec here, and so without roofs: ${unknown.join(", ")}.`,
      ),
    );
  }
};
