// Numbers with their units, three digits each.
const PREFIXES = [
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
];

function digits(value) {
  const size = Math.abs(value);
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

page.si = (value, unit) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return `0 ${unit}`;
  const size = Math.abs(value) * (1 + 5e-4);
  const [scale, prefix] = PREFIXES.find(([least]) => size >= least) ?? PREFIXES.at(-1);
  return `${digits(value / scale)} ${prefix}${unit}`;
};

// Bytes of a capacity, with a binary prefix.
page.binary = (value) => {
  const power = Math.min(Math.floor(Math.log2(Math.max(Math.abs(value), 1)) / 10), 5);
  return power ? `${digits(value / 1024 ** power)} ${"KMGTP"[power - 1]}iB` : `${digits(value)} B`;
};

page.time = (us) => (us === null || us === undefined ? "–" : page.si(us / 1e6, "s"));

page.share = (value) => `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)}%`;

page.ratio = (value) =>
  Math.abs(value) >= 999.5 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();

// How values of a kind of column are written.
page.formats = {
  text: (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : String(value)),
  number: (value) => (Number.isInteger(value) ? String(value) : page.ratio(value)),
  percent: page.share,
  time: page.time,
  ms: (value) => page.si(value / 1e3, "s"),
  seconds: (value) => page.si(value, "s"),
  gb_per_s: (value) => page.si(value * 1e9, "B/s"),
  watts: (value) => page.si(value, "W"),
  binary: page.binary,
  bytes: (value) => page.si(value, "B"),
  flops: (value) => page.si(value, "FLOP"),
  flops_per_s: (value) => page.si(value, "FLOP/s"),
};

page.shown = (value, kind) =>
  value === null || value === undefined || value === "" ? "–" : page.formats[kind](value);

// A value at a tick: "10 ms" where a cell has "10.0 ms"; thousands are k, millions M.
page.tick = (value, kind) => {
  const text = kind === "number" && value >= 1e3 ? page.si(value, "") : page.shown(value, kind);
  return text.replace(/\.0+(?=\D|$)/, "").replace(/(\.\d*?)0+(?=\D|$)/, "$1").trim();
};

// A case in a few words: what tells it from the others, else its operator.
page.called = (one) => {
  const varying = page.varying();
  const sizes = varying
    .filter((name) => one.problem[name] !== undefined)
    .map((name) => `${name}=${one.problem[name]}`)
    .join(" ");
  return [one.device, one.label || one.algorithm, one.schedule, sizes].filter(Boolean).join(" · ");
};

// Fields of the problems that differ between cases of one operator.
page.varying = () => {
  if (page.varies) return page.varies;
  const groups = {};
  for (const one of page.data.cases) {
    const seen = (groups[one.algorithm] ??= {});
    for (const [name, value] of Object.entries(one.problem)) (seen[name] ??= new Set()).add(value);
  }
  const names = Object.values(groups).flatMap((seen) =>
    Object.keys(seen).filter((name) => seen[name].size > 1),
  );
  page.varies = page.unique(names).filter((name) => name !== "op");
  return page.varies;
};

// What the case's device calls a term.
page.term = (one, name) => one.levels?.[name] ?? { hbm: "memory" }[name] ?? name;
