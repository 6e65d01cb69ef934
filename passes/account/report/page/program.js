// View of the unpartitioned program, with its functions, loops and repeated layers foldable.

const closed = new Set();
const unfolded = new Set();

const foldsAt = once(
  () => new Map(found.folds.map(([start, period, times], number) => [start, { number, start, period, times }])),
);

function programView(search) {
  const list = new List({
    label: "program",
    header: headings("operation", "type", "sharding", "bytes per device", "source"),
    drawRow: (item) => programRow(item, toggle),
    open: (item) => (item.fold ? toggle(item) : go({ show: `r${item.row}` })),
    fold: (item, folded) => {
      if (item.fold || row(item.row).nested) setFolded(item, folded);
    },
    isShown: (item) =>
      item.row !== undefined &&
      (address.show === `r${item.row}` || row(item.row).results.some((number) => address.show === `v${number}`)),
  });
  const setFolded = (item, folded) => {
    if (item.fold) unfolded[folded ? "delete" : "add"](item.fold.number);
    else closed[folded ? "add" : "delete"](item.row);
    list.items = programItems(address.search);
    list.space.style.height = `${list.items.length * ROW_HEIGHT}px`;
    list.move(list.items.findIndex((each) => (item.fold ? each.fold === item.fold : each.row === item.row)));
  };
  const toggle = (item) => setFolded(item, item.fold ? unfolded.has(item.fold.number) : !closed.has(item.row));
  revealRow(shownRow());
  list.show(programItems(search));
  return {
    element: list.element,
    find: (text) => list.show(programItems(text)),
    refresh: () => list.redraw(),
    none: "No operation matches.",
  };
}

// The row that the address selects.
function shownRow() {
  const [kind, number] = [address.show[0], Number(address.show.slice(1))];
  if (kind === "r") return number;
  return kind === "v" && number < found.values.row.length ? found.values.row[number] : NONE;
}

// Unfold everything that contains a row.
function revealRow(number) {
  for (const { number: fold, start, period, times } of foldsAt().values())
    if (number >= start + period && number < start + period * times) unfolded.add(fold);
  for (const around of closed) if (number > around && number <= around + row(around).nested) closed.delete(around);
}

function programItems(search) {
  return search ? matchingItems(search.toLowerCase()) : foldedItems();
}

function foldedItems() {
  const items = [];
  const ends = [];
  const count = found.rows.op.length;
  for (let number = 0; number < count;) {
    while (ends.length && ends.at(-1).end <= number) {
      const { fold } = ends.pop();
      if (fold && !unfolded.has(fold.number)) number = fold.start + fold.period * fold.times;
    }
    if (number >= count) break;
    const fold = foldsAt().get(number);
    if (fold && !ends.some((each) => each.fold === fold)) {
      items.push({ fold, depth: ends.length });
      ends.push({
        end: unfolded.has(fold.number) ? fold.start + fold.period * fold.times : fold.start + fold.period,
        fold,
      });
    }
    items.push({ row: number, depth: ends.length });
    const nested = found.rows.nested[number];
    if (nested && closed.has(number)) number += nested;
    else if (nested) ends.push({ end: number + nested + 1 });
    number += 1;
  }
  return items;
}

// Match interned strings, types and locations once, and then the rows that refer to them.
function matchingItems(wanted) {
  const strings = new Set(
    found.strings.flatMap((text, number) => (text.toLowerCase().includes(wanted) ? [number] : [])),
  );
  const has = (list, text) =>
    new Set(list.flatMap((each, number) => (text(each).toLowerCase().includes(wanted) ? [number] : [])));
  const tensors = has(found.tensors, ([type, layout]) => `${found.types[type].text} ${found.layouts[layout].text}`);
  const places = has(found.places, ([file, line]) => `${string(file)}:${line}`);
  const { op, what, scope, place: at, results } = found.rows;
  const { name, tensor: kinds } = found.values;
  const items = [];
  for (let number = 0; number < op.length; number += 1) {
    const matches =
      strings.has(op[number]) ||
      strings.has(what[number]) ||
      strings.has(scope[number]) ||
      places.has(at[number]) ||
      results[number].some((result) => tensors.has(kinds[result]) || name[result].toLowerCase().includes(wanted));
    if (matches) items.push({ row: number, depth: 0 });
  }
  return items;
}

function programRow(item, toggle) {
  return item.fold ? foldRow(item, toggle) : operationRow(item, toggle);
}

const foldButton = (item, isClosed, toggle) =>
  make(
    "button",
    {
      type: "button",
      class: "toggle",
      tabindex: -1,
      "aria-label": isClosed ? "unfold" : "fold",
      onclick: () => toggle(item),
    },
    isClosed ? "▸" : "▾",
  );

function foldRow(item, toggle) {
  const { number, period, times } = item.fold;
  const isClosed = !unfolded.has(number);
  const text = `${times} repetitions of ${period.toLocaleString("en")} operations${isClosed ? ", first shown" : ""}`;
  return make(
    "div",
    { class: "fold", "--depth": item.depth },
    make("span", {}, foldButton(item, isClosed, toggle), text),
  );
}

function operationRow(item, toggle) {
  const shown = row(item.row);
  const [first] = shown.results.map(value);
  const names = shown.results.length > 3 ? [code(`${first.name}, …`)] : shown.results.map(valueLink);
  return make(
    "div",
    { "--depth": item.depth },
    make(
      "span",
      { dir: "auto" },
      shown.nested > 0 && foldButton(item, closed.has(item.row), toggle),
      names.flatMap((name, index) => (index ? [", ", name] : [name])),
      names.length > 0 && " = ",
      make("b", {}, shown.op.replace("stablehlo.", "")),
      shown.what && [" ", code(shown.what)],
      " ",
      shown.operands.slice(0, 4).flatMap((number, index) => (index ? [", ", valueLink(number)] : [valueLink(number)])),
      shown.operands.length > 4 && ", …",
    ),
    first ? code(first.type.text) : make("span"),
    first ? layoutCode(first.layout) : make("span"),
    first ? bytesElement(first.local) : make("span"),
    make("span", {}, placeLink(shown.place)),
  );
}
