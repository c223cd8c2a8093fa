// Dots that can be pointed at, walked with the arrow keys, and chosen with Enter or a click. Only one
// of a chart is in the order of tabs.
const SHAPES = {
  circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  square: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
  triangle: (r) => `M0,${-1.2 * r}L${1.15 * r},${0.85 * r}H${-1.15 * r}Z`,
  diamond: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0Z`,
  down: (r) => `M0,${1.2 * r}L${1.15 * r},${-0.85 * r}H${-1.15 * r}Z`,
  left: (r) => `M${-1.2 * r},0L${0.85 * r},${1.15 * r}V${-1.15 * r}Z`,
  right: (r) => `M${1.2 * r},0L${-0.85 * r},${1.15 * r}V${-1.15 * r}Z`,
  bar: (r) => `M${-r / 2},${-1.3 * r}H${r / 2}V${1.3 * r}H${-r / 2}Z`,
  plus: (r) =>
    `M${-r},${-r / 3}H${-r / 3}V${-r}H${r / 3}V${-r / 3}H${r}V${r / 3}H${r / 3}V${r}H${-r / 3}V${r / 3}H${-r}Z`,
};

page.shapes = Object.keys(SHAPES);
page.colours = ["blue", "vermilion", "green", "ochre", "purple", "sky", "ink", "grey"];

// Colour and shape of series i: nine shapes and eight colours, so that 72 series differ.
page.look = (i) => [page.colours[i % page.colours.length], page.shapes[i % page.shapes.length]];

page.mark = (shape, radius, attributes) =>
  page.svg("path", { d: SHAPES[shape](radius), ...attributes });

// Nodes that the arrow keys walk; one of them is in the order of tabs.
page.walked = (nodes, choose) => {
  nodes.forEach((node, i) => {
    node.setAttribute("tabindex", i === 0 ? 0 : -1);
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        const next = nodes[(i + step + nodes.length) % nodes.length];
        node.setAttribute("tabindex", -1);
        next.setAttribute("tabindex", 0);
        next.focus();
        event.preventDefault();
      } else if (choose && (event.key === "Enter" || event.key === " ")) {
        choose(i);
        event.preventDefault();
      }
    });
  });
};

// A small picture of a mark, a line or a colour for a legend.
page.swatch = (fill, ...marks) =>
  page.svg(
    "svg",
    { class: "swatch", viewBox: "0 0 34 12", "aria-hidden": "true" },
    fill ? page.svg("rect", { x: 8, y: 0, width: 18, height: 12, class: fill }) : null,
    marks,
  );

// Each item is {x, y, shape, radius, colour, filled, name, describe, choose, data}.
page.dots = (group, items) => {
  const nodes = items.map((item) => {
    const node = page.mark(item.shape, item.radius, {
      class: `dot ${item.colour} ${item.filled ? `fill-${item.colour}` : "fill-ground"}${item.selected ? " selected" : ""}`,
      transform: `translate(${item.x},${item.y})`,
      role: "button",
      "aria-label": item.name,
      ...item.data,
      onclick: () => item.choose?.(),
    });
    page.tip.on(node, () => [item.name, item.describe()]);
    group.append(node);
    return node;
  });
  page.walked(nodes, (i) => items[i].choose?.());
  return nodes;
};
