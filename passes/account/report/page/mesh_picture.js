// Drawing of a sharding: a cell for each shard, with the devices that hold it.
//
// The last two sharded dimensions are the columns and the rows of a grid; the other sharded dimensions index the grids.

const MOST_GRIDS = 32;
const MOST_LABELLED = 64;
const MOST_SMALL = 12;

function meshPicture({ type, layout }) {
  const split = layout.parts.map((parts, dim) => ({ parts, dim })).filter(({ parts }) => parts > 1);
  if (!layout.holds.length && split.length) return make("p", {}, "The mesh has too many devices to draw.");
  if (!split.length)
    return make(
      "div",
      { class: "picture" },
      make("p", {}, `Replicated on ${inWords(layout.copies, "device")}.`),
    );
  const devices = devicesByPart(layout);
  const columns = split.at(-1);
  const rows = split.length > 1 ? split.at(-2) : { parts: 1, dim: NONE };
  const others = split.slice(0, -2);
  const grids = indices(others.map(({ parts }) => parts));
  const drawn = grids.slice(0, MOST_GRIDS).map((at) => grid({ type, layout, devices, rows, columns, others, at }));
  const more = grids.length - drawn.length;
  return make("div", { class: "picture" }, drawn, more > 0 && make("p", {}, `and ${inWords(more, "grid")} more`));
}

// The same drawing, without labels, in the height of a row.
function thumbnail(layout) {
  const split = layout.parts.filter((parts) => parts > 1);
  const columns = Math.min(split.at(-1) ?? 1, MOST_SMALL);
  const rows = Math.min(
    split.slice(0, -1).reduce((product, parts) => product * parts, 1),
    MOST_SMALL,
  );
  const cells = Array.from({ length: rows * columns }, (_, part) =>
    make("i", { "--hue": (360 * part) / (rows * columns) }),
  );
  return make(
    "span",
    {
      class: "thumbnail",
      "aria-hidden": "true",
      "--columns": columns,
      "--tall": `${Math.max(1, Math.floor(24 / rows) - 1)}px`,
    },
    cells,
  );
}

function grid({ type, layout, devices, rows, columns, others, at }) {
  const count = rows.parts * columns.parts;
  const cells = [];
  for (let row = 0; row < rows.parts; row += 1) {
    for (let column = 0; column < columns.parts; column += 1) {
      const index = layout.parts.map(() => 0);
      others.forEach(({ dim }, number) => (index[dim] = at[number]));
      if (rows.dim !== NONE) index[rows.dim] = row;
      index[columns.dim] = column;
      cells.push(cell(type.shape, layout, devices, index, count));
    }
  }
  const title = others
    .map(({ dim, parts }, number) => `dimension ${dim}: ${slice(type.shape[dim], parts, at[number])}`)
    .join(", ");
  const across = `dimension ${columns.dim} of ${type.shape[columns.dim].toLocaleString("en")} →`;
  const down = rows.dim === NONE ? "" : `↓ dimension ${rows.dim} of ${type.shape[rows.dim].toLocaleString("en")}, `;
  return make(
    "figure",
    {},
    make("div", { class: count > MOST_LABELLED ? "grid dense" : "grid", "--columns": columns.parts }, cells),
    make("figcaption", {}, title && make("b", {}, `${title}; `), down + across),
  );
}

function cell(shape, layout, devices, index, count) {
  const part = index.reduce((number, at, dim) => number * layout.parts[dim] + at, 0);
  const slices = `[${index.map((at, dim) => slice(shape[dim], layout.parts[dim], at)).join(", ")}]`;
  const held = ranges(devices[part]);
  const parts = layout.parts.reduce((product, each) => product * each, 1);
  const label = count > MOST_LABELLED ? [] : [make("b", {}, held), make("small", {}, slices)];
  return make(
    "div",
    {
      class: "cell",
      title: `${slices} on ${devices[part].length > 1 ? "devices" : "device"} ${held}`,
      "--hue": (360 * part) / parts,
    },
    label,
  );
}

function slice(size, parts, at) {
  if (parts === 1) return ":";
  const each = Math.ceil(size / parts);
  const [start, end] = [Math.min(at * each, size), Math.min((at + 1) * each, size)];
  return start === end ? "padding" : `${start}:${end}`;
}

function devicesByPart(layout) {
  const devices = Array.from({ length: layout.parts.reduce((product, each) => product * each, 1) }, () => []);
  layout.holds.forEach((part, device) => devices[part].push(device));
  return devices;
}

// All index tuples below `sizes`, in row-major order.
function indices(sizes) {
  return sizes.reduce(
    (tuples, size) => tuples.flatMap((tuple) => Array.from({ length: size }, (_, at) => [...tuple, at])),
    [[]],
  );
}

// Device numbers as ranges: 0-3, 8
function ranges(devices) {
  const parts = [];
  for (const device of devices) {
    const last = parts.at(-1);
    if (last && last.end === device - 1) last.end = device;
    else parts.push({ start: device, end: device });
  }
  const shown = parts.slice(0, 4).map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`));
  return shown.join(", ") + (parts.length > 4 ? `, … (${devices.length})` : "");
}
