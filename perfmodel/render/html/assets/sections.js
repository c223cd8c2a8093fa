// What a cell is, in tables whose rows are measured in several units: each row says its own.
page.kindIn = (parts) => {
  const unit = parts.find((part) => part.unit)?.unit;
  const several = ["measured", "predicted", "low", "high"];
  return unit ? (column, row) => (several.includes(column.key) ? row[unit] : column.kind) : null;
};

// Sections of the kinds of results: each is rows, and the charts and tables of them.
page.sections = (found, prefix) => {
  found.forEach((one, i) => {
    const id = one.id ?? `${prefix}-${i}`;
    const section = page.section(id, one.title);
    const rows = one.rows.map((cells) =>
      Object.fromEntries(one.columns.map((column, j) => [column.key, cells[j]])),
    );
    one.parts.forEach((part, j) => {
      if (part.part === "bars") page.bars(section, part);
      else if (part.part === "dots")
        page.scatter(section, part, one.columns, rows, j ? `${id}-${j}` : id);
      else if (rows.length) {
        if (part.title) section.append(page.el("h3", {}, part.title));
        page.table(section, one.columns, rows, {
          caption: part.title || one.title,
          name: one.title,
          kindOf: page.kindIn(one.parts),
        });
      }
    });
  });
};
