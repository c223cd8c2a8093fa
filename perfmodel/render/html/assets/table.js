// Tables that sort by a click on a header, filter by words, and go to the clipboard's cousin, CSV.
const PRINTED = 40; // rows on paper, as style.css has it
const SHOWN = 200; // rows drawn at first; the rest follows when it is asked for

// columns: {key, header, kind, get?(row)}; options: {caption, choose(row), isSelected(row), name}.
page.table = (parent, given, rows, options = {}) => {
  const columns = given.filter((column) => !column.hidden);
  const alike = given.filter((column) => column.hidden && column.key !== "unit");
  const value = (row, column) => (column.get ? column.get(row) : row[column.key]);
  let [sorted, descending, words, all] = [null, false, "", false];
  const body = page.el("tbody");
  const count = page.el("span", { class: "note", "aria-live": "polite" });
  const more = page.el(
    "button",
    {
      type: "button",
      class: "more",
      onclick: () => {
        all = true;
        draw();
      },
    },
    "Show all rows",
  );

  function chosen() {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = (row) =>
      columns
        .map((column) => page.shown(value(row, column), column.kind))
        .join(" ")
        .toLowerCase();
    const found = wanted.length
      ? rows.filter((row) => {
          const text = texts(row);
          return wanted.every((word) => text.includes(word));
        })
      : [...rows];
    if (sorted !== null) {
      const sign = descending ? -1 : 1;
      const missing = (item) => item === null || item === undefined || item === "";
      found.sort((one, other) => {
        const [a, b] = [value(one, sorted), value(other, sorted)];
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        return (
          sign *
          (typeof a === "number" && typeof b === "number"
            ? a - b
            : String(a).localeCompare(String(b)))
        );
      });
    }
    return found;
  }

  function draw() {
    const found = chosen();
    const shown = all ? found : found.slice(0, SHOWN);
    body.replaceChildren(
      ...shown.map((row) =>
        page.el(
          "tr",
          {
            class: options.isSelected?.(row) ? "selected" : null,
            onclick: options.choose ? () => options.choose(row) : null,
          },
          columns.map((column, i) => {
            const shown = options.kindOf?.(column, row) ?? column.kind;
            const text = page.shown(value(row, column), shown);
            const kind = column.kind === "text" ? (text.length > 40 ? "clip" : null) : "number";
            const inner =
              options.choose && i === 0
                ? page.el("button", { type: "button", class: "fact" }, text)
                : text;
            return page.el("td", { class: kind, title: kind === "clip" ? text : null }, inner);
          }),
        ),
      ),
    );
    count.textContent = `${shown.length} of ${rows.length} rows`;
    more.hidden = shown.length === found.length;
  }

  const heads = columns.map((column) => {
    const head = page.el("th", {
      scope: "col",
      "aria-sort": "none",
      class: column.kind === "text" ? null : "number",
    });
    head.append(
      page.el(
        "button",
        {
          type: "button",
          onclick: () => {
            descending = sorted === column ? !descending : false;
            sorted = column;
            for (const other of heads) other.setAttribute("aria-sort", "none");
            head.setAttribute("aria-sort", descending ? "descending" : "ascending");
            draw();
          },
        },
        column.header,
      ),
    );
    return head;
  });
  const search = page.el("input", {
    type: "search",
    oninput: (event) => {
      words = event.target.value;
      draw();
    },
  });
  const scroll = page.el("div", {
    class: "scroll",
    tabindex: 0,
    role: "region",
    "aria-label": options.caption ?? "Table",
  });
  const wider = page.el("p", { class: "note" }, "Wider than the page: scroll the table sideways.");
  new ResizeObserver(() => {
    wider.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }).observe(scroll);
  const long = rows.length > PRINTED;
  parent.append(
    page.el(
      "div",
      { class: "controls" },
      page.el("label", {}, "Rows with ", search),
      page.el(
        "button",
        {
          type: "button",
          onclick: () =>
            page.download(
              `${options.name ?? "table"}.csv`,
              page.csv(
                given.map((column) => column.key ?? column.header),
                chosen().map((row) => given.map((column) => value(row, column))),
              ),
            ),
        },
        "CSV",
      ),
      count,
    ),
    alike.length
      ? page.el(
          "p",
          { class: "note" },
          `In all rows: ${alike.map((column) => `${column.header} ${page.shown(value(rows[0], column), column.kind)}`).join(", ")}.`,
        )
      : "",
    wider,
    long
      ? page.el(
          "p",
          { class: "note printed" },
          `Printed are the first ${PRINTED} of ${rows.length} rows as they are sorted.`,
        )
      : "",
    scroll,
    more,
  );
  scroll.append(
    page.el(
      "table",
      { class: long ? "long" : null },
      page.el("caption", { class: "hidden-text" }, options.caption ?? ""),
      page.el("thead", {}, page.el("tr", {}, heads)),
      body,
    ),
  );
  draw();
  return draw;
};
