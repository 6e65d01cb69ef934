// Details of the selected item: a finding, a collective, a tensor, an operation, an array or a source location.

const DETAILS = {
  f: (rest) => findingDetails(Number(rest)),
  c: (rest) => collectiveDetails(...rest.split(".").map(Number)),
  v: (rest) => valueDetails(Number(rest)),
  r: (rest) => rowDetails(Number(rest)),
  a: (rest) => arrayDetails(found.arrays[Number(rest)]),
  p: (rest) => placeDetails(place(Number(rest))),
};

function detailsOf(shown) {
  try {
    return DETAILS[shown[0]](shown.slice(1));
  } catch {
    return [make("h2", {}, "Not found"), make("p", {}, "The address refers to nothing on this page.")];
  }
}

const fact = (name, ...what) => make("div", { class: "fact" }, make("dt", {}, name), make("dd", {}, ...what));
const facts = (...all) => make("dl", {}, ...all);
const layoutCode = (layout) => code(layout.text, { class: "layout" });

function tensorFacts({ type, layout, local }) {
  return [
    fact("type", code(type.text)),
    fact("sharding", layoutCode(layout)),
    fact("per device", bytesElement(local), local === type.bytes ? ", all of it" : ` of ${shownBytes(type.bytes)}`),
    layout.copies > 1 && fact("replicas", `${inWords(layout.copies, "device")} hold the same shard`),
  ];
}

function valueDetails(number) {
  const shown = value(number);
  const owner = row(shown.row);
  const isArgument = !owner.results.includes(number);
  const users = readers().get(number) ?? [];
  return [
    make("h2", {}, code(shown.name)),
    facts(
      ...tensorFacts(shown),
      fact(isArgument ? "argument of" : "result of", rowLink(shown.row), " ", owner.what, " ", placeLink(owner.place)),
      owner.scope && !isArgument && fact("scope", code(owner.scope)),
    ),
    meshPicture(shown),
    make("h3", {}, "Why it has this sharding"),
    reasonsElement(number),
    make("h3", {}, inWords(users.length, "user")),
    make(
      "ul",
      { class: "readers" },
      users.slice(0, 50).map(readerElement),
      users.length > 50 && make("li", {}, `and ${users.length - 50} more`),
    ),
    !isArgument && owner.place && [make("h3", {}, "Source"), sourceExcerpt(owner.place)],
  ].flat();
}

function readerElement(number) {
  const reader = row(number);
  return make("li", {}, rowLink(number), " ", reader.results.slice(0, 1).map(valueLink), " ", placeLink(reader.place));
}

function rowDetails(number) {
  const shown = row(number);
  return [
    make("h2", {}, code(shown.op), " ", shown.what),
    facts(
      shown.scope && fact("scope", code(shown.scope)),
      shown.library && fact("library line", placeLink(shown.library)),
      shown.seconds !== null && fact("compute time", shownSeconds(shown.seconds), " per step, predicted"),
      fact("shown", link({ view: "program", search: "", show: `r${number}` }, {}, "in the program")),
    ),
    shown.operands.length > 0 && make("h3", {}, "Operands"),
    tensorsElement(shown.operands),
    shown.results.length > 0 && make("h3", {}, "Results"),
    tensorsElement(shown.results),
    shown.place && [make("h3", {}, "Source"), sourceExcerpt(shown.place)],
  ].flat();
}

function tensorsElement(numbers) {
  return make(
    "ul",
    { class: "tensors" },
    numbers.map((number) =>
      make("li", {}, valueLink(number), " ", code(value(number).type.text), " ", layoutCode(value(number).layout)),
    ),
  );
}

function arrayDetails({ kind, name, tensor: number, value: held }) {
  if (held !== NONE) return valueDetails(held);
  return [
    make("h2", {}, string(name)),
    facts(fact("kind", kind), ...tensorFacts(tensor(number))),
    meshPicture(tensor(number)),
  ];
}

function placeDetails(at) {
  const rows = found.rows.place.flatMap((number, index) => (number === at.number ? [index] : []));
  return [
    make("h2", {}, shortPlace(at)),
    sourceExcerpt(at),
    make("h3", {}, inWords(rows.length, "operation")),
    make("ul", { class: "readers" }, rows.slice(0, 50).map(readerElement)),
  ];
}
