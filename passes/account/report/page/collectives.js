// View of the collectives of a step, in decreasing order of bytes received; equal ones share an expandable row.

const opened = new Set();

const COLLECTIVE_WORDS = {
  "partial results": (op) =>
    `${op} reduces a sharded dimension: each device has partial results, and a collective combines them.`,
  reshard: (op) => `A tensor has a different sharding from the one that ${op} or its users require.`,
  exchange: (op) => `${op} itself reads elements of other devices.`,
};

const bytesOf = (group) => total(group, (each) => each.bytes);
const secondsOf = (group) => total(group, (each) => each.seconds);

function collectivesView(search) {
  const most = bytesOf(found.collectives[0] ?? []);
  const list = new List({
    label: "collectives",
    header: headings("received", "share", "collective", "badge", "local tensor", "for", "source"),
    drawRow: (item) => collectiveRow(item, most, setOpened),
    open: (item) => go({ show: nameOf(item) }),
    fold: ({ group }, folded) => setOpened(group, !folded),
    isShown: (item) => address.show === nameOf(item),
  });
  const setOpened = (group, isOpen) => {
    opened[isOpen ? "add" : "delete"](group);
    list.show(collectiveItems(address.search));
    list.move(list.items.findIndex((each) => each.group === group));
  };
  list.show(collectiveItems(search));
  return {
    element: list.element,
    find: (text) => list.show(collectiveItems(text)),
    refresh: () => list.redraw(),
    none: "Devices exchange no data.",
  };
}

function groupButton(group, setOpened) {
  const isOpen = opened.has(group);
  const attributes = { type: "button", class: "toggle", tabindex: -1, "aria-label": isOpen ? "fold" : "unfold" };
  return make("button", { ...attributes, onclick: () => setOpened(group, !isOpen) }, isOpen ? "▾" : "▸");
}

const nameOf = ({ group, member }) => (member === NONE ? `c${group}` : `c${group}.${member}`);

function collectiveItems(search) {
  const items = [];
  found.collectives.forEach((group, number) => {
    if (search && !group.some((each) => collectiveText(each).includes(search.toLowerCase()))) return;
    items.push({ group: number, member: NONE });
    if (opened.has(number)) group.forEach((_, member) => items.push({ group: number, member }));
  });
  return items;
}

function collectiveText({ kind, axes, type, row: number, place: at, purpose, badge, finding }) {
  const named = number === NONE ? "" : `${row(number).op} ${row(number).scope}`;
  const where = at === NONE ? "" : `${place(at).file}:${place(at).line}`;
  const badgeName = finding === NONE ? found.badges[badge][0] : "avoidable";
  return `${kind} ${axes} ${found.types[type].text} ${named} ${where} ${purpose} ${badgeName}`.toLowerCase();
}

function collectiveRow({ group: number, member }, most, setOpened) {
  const group = found.collectives[number];
  const members = member === NONE ? group : [group[member]];
  const [first] = members;
  const bytes = bytesOf(members);
  const runs = total(members, (each) => each.times);
  const canOpen = member === NONE && group.length > 1;
  const at = place(first.place);
  const lines = new Set(members.map((each) => place(each.place)?.line));
  return make(
    "div",
    { class: member === NONE ? "" : "member" },
    bytesElement(bytes),
    make("span", { class: "bar", "--part": most ? bytes / most : 0 }, share(bytes, received)),
    make(
      "span",
      {},
      canOpen && groupButton(number, setOpened),
      make("b", {}, first.kind),
      first.axes && ` over ${first.axes}`,
      runs > 1 && make("span", { class: "quiet" }, ` × ${runs.toLocaleString("en")}`),
    ),
    make("span", {}, badgeElement(members.find((each) => each.finding !== NONE) ?? first)),
    code(found.types[first.type].text),
    make("span", { dir: "auto" }, first.row === NONE ? "" : row(first.row).op.replace("stablehlo.", "")),
    make("span", {}, at && placeLink(at), lines.size > 1 && ", …"),
  );
}

function collectiveDetails(number, member = NONE) {
  const group = found.collectives[number];
  const first = group[Math.max(member, 0)];
  const members = member === NONE ? group : [first];
  const bytes = bytesOf(members);
  const at = place(first.place);
  const library = first.row === NONE ? null : row(first.row).library;
  return [
    make("h2", {}, first.kind, first.axes && ` over ${first.axes}`),
    facts(
      fact("received", bytesElement(bytes), ` per device and step, ${share(bytes, received)} of the total`),
      badgeFact(members.find((each) => each.finding !== NONE) ?? first),
      fact("runs", `${inWords(total(members, (each) => each.times), "time")} per step`),
      found.hardware && fact("time", shownSeconds(secondsOf(members)), " per step, predicted"),
      fact("local tensor", code(found.types[first.type].text)),
      library && fact("library line", placeLink(library)),
    ),
    first.row !== NONE && whyElement(first),
    at && [make("h3", {}, "Source"), sourceExcerpt(at)],
    members.length > 1 && [
      make("h3", {}, `${members.length} equal collectives`),
      make(
        "ul",
        { class: "readers" },
        members.slice(0, 100).map((each, index) => alike(number, index, each)),
      ),
    ],
  ].flat();
}

function alike(group, member, { bytes, place: at, row: number }) {
  const name =
    number === NONE
      ? ""
      : (row(number)
          .results.slice(0, 1)
          .map((result) => value(result).name)[0] ?? row(number).op);
  return make(
    "li",
    {},
    link({ show: `c${group}.${member}` }, {}, shownBytes(bytes)),
    " ",
    code(name),
    " ",
    placeLink(place(at)),
  );
}

function whyElement({ row: number, axes, purpose, tensor: moved, before, after }) {
  const requiring = row(number);
  const first = moved === NONE || purpose === "partial results" ? [] : [moved];
  const sides = [...new Set([...first, ...requiring.operands, ...requiring.results])];
  return make(
    "div",
    {},
    make("h3", {}, "Why it is there"),
    make("p", {}, COLLECTIVE_WORDS[purpose](requiring.op), " ", rowLink(number), " ", placeLink(requiring.place)),
    moved !== NONE &&
      before !== NONE &&
      make(
        "p",
        {},
        valueLink(moved),
        " is resharded from ",
        layoutCode(found.layouts[before]),
        " to ",
        layoutCode(found.layouts[after]),
        ".",
      ),
    sides.map((each, index) => sideElement(each, index < 2, axes)),
  );
}

// A tensor of the operation with the propagation chains of its axes, those of the collective first.
function sideElement(number, open, axes) {
  const side = value(number);
  return make(
    "details",
    { open, class: "side" },
    make("summary", {}, valueLink(number), " ", code(side.type.text), " ", layoutCode(side.layout)),
    reasonsElement(number, axes),
  );
}
