// View of arguments, results and the largest intermediate tensors, sortable and searchable.

const SORTS = {
  name: (array) => string(array.name),
  kind: (array) => array.kind,
  type: (array) => tensor(array.tensor).type.text,
  shards: (array) => tensor(array.tensor).layout.parts.join(),
  sharding: (array) => tensor(array.tensor).layout.text,
  "bytes per device": (array) => -tensor(array.tensor).local,
  fraction: (array) => tensor(array.tensor).local / (tensor(array.tensor).type.bytes || 1),
  "replicated on": (array) => -tensor(array.tensor).layout.copies,
};

let sortedBy = "bytes per device";
let isReversed = false;

function arraysView(search) {
  const list = new List({
    label: "arrays",
    header: Object.keys(SORTS).map((name) =>
      make(
        "button",
        { type: "button", class: name === "bytes per device" ? "amount" : "", onclick: () => sortBy(name) },
        name,
      ),
    ),
    drawRow: arrayRow,
    open: (number) => go({ show: `a${number}` }),
    isShown: (number) =>
      address.show === `a${number}` ||
      (found.arrays[number].value !== NONE && address.show === `v${found.arrays[number].value}`),
  });
  const sortBy = (name) => {
    isReversed = sortedBy === name && !isReversed;
    sortedBy = name;
    list.show(arrayItems(address.search));
    markSorted(list);
  };
  list.show(arrayItems(search));
  markSorted(list);
  return {
    element: list.element,
    find: (text) => list.show(arrayItems(text)),
    refresh: () => list.redraw(),
    none: "There are no arrays.",
  };
}

function markSorted(list) {
  for (const button of list.element.querySelectorAll(".header button")) {
    const isSorted = button.textContent === sortedBy;
    button.dataset.sorted = isSorted ? (isReversed ? "reversed" : "sorted") : "";
    button.setAttribute("aria-pressed", String(isSorted));
  }
}

function arrayItems(search) {
  const key = SORTS[sortedBy];
  const wanted = search.toLowerCase();
  const items = found.arrays
    .map((_, number) => number)
    .filter((number) => arrayText(found.arrays[number]).includes(wanted));
  const keys = new Map(items.map((number) => [number, key(found.arrays[number])]));
  const order = (one, other) => (keys.get(one) < keys.get(other) ? -1 : Number(keys.get(one) > keys.get(other)));
  items.sort(order);
  return isReversed ? items.reverse() : items;
}

function arrayText(array) {
  const { type, layout } = tensor(array.tensor);
  const name = array.value === NONE ? "" : value(array.value).name;
  return `${string(array.name)} ${name} ${array.kind} ${type.text} ${layout.text}`.toLowerCase();
}

const arrayName = ({ kind, name, value: number }) =>
  kind === "intermediate" ? code(value(number).name) : string(name);

function arrayRow(number) {
  const array = found.arrays[number];
  const { type, layout, local } = tensor(array.tensor);
  return make(
    "div",
    {},
    make("span", { dir: "auto" }, arrayName(array)),
    make(
      "span",
      { class: "quiet" },
      array.kind === "intermediate" ? string(array.name).replace("stablehlo.", "") : array.kind,
    ),
    code(type.text),
    thumbnail(layout),
    layoutCode(layout),
    bytesElement(local),
    make("span", { class: "bar", "--part": local / (type.bytes || 1) }, share(local, type.bytes)),
    make("span", {}, layout.copies > 1 ? inWords(layout.copies, "device") : ""),
  );
}
