// The page's data, its state, and how elements are made. Text is only ever set as text: nothing of
// the data is read as markup.
const page = {
  data: JSON.parse(document.getElementById("data").textContent),
  listeners: {},
};

page.state = {
  selected: page.data.cases.length ? 0 : null, // index of the case whose terms are shown
  roofs: "measured", // or "peak"
  factors: {}, // hardware number → log2 of what it is multiplied by
};

page.on = (event, listener) => {
  (page.listeners[event] ??= []).push(listener);
};

page.emit = (event) => {
  for (const listener of page.listeners[event] ?? []) listener();
};

page.select = (index) => {
  page.state.selected = index;
  page.emit("select");
};

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

// An element of HTML: page.el("p", {class: "note"}, "text", child, …).
page.el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

// An element of SVG.
page.svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// A section with its heading and its entry in the contents; gives its element back.
page.section = (id, title) => {
  const section = page.el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    page.el("h2", { id: `${id}-title` }, title),
  );
  document.getElementById("main").append(section);
  document
    .getElementById("contents")
    .append(page.el("li", {}, page.el("a", { href: `#${id}` }, title)));
  return section;
};

// Calls draw(width) now and whenever the element's width changes.
page.drawn = (element, draw) => {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width && width !== last) {
      last = width;
      draw(width);
    }
  }).observe(element);
  return () => draw(last || Math.floor(element.clientWidth) || 320);
};

page.unique = (values) => [...new Set(values)];

page.median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
