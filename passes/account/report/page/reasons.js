// Why a tensor has its axes: the steps that brought each, back to where it was given.

const FIRST_STEPS = 3;
const LAST_STEPS = 2;

function chainOf(number) {
  const steps = [];
  for (let at = number; at !== NONE; at = step(at).previous) steps.push(step(at));
  return steps;
}

// For each axis: its dimension, and the steps that brought it.
function chainsOf(valueNumber) {
  const flat = found.reasons[valueNumber] ?? [];
  const chains = [];
  for (let at = 0; at < flat.length; at += 2) chains.push({ dimension: flat[at], steps: chainOf(flat[at + 1]) });
  return chains;
}

function reasonsElement(valueNumber, firstAxes = "") {
  if (!found.reasons.length)
    return make("p", { class: "quiet" }, "The program was given with its shardings: no reasons are known.");
  const chains = chainsOf(valueNumber);
  if (!chains.length) return missedElement(valueNumber);
  const isFirst = ({ steps }) => firstAxes.split(", ").includes(steps[0].axis.split('"')[1]);
  return make(
    "div",
    { class: "reasons" },
    [...chains.filter(isFirst), ...chains.filter((chain) => !isFirst(chain))].map(chainElement),
  );
}

// Of a tensor that no axis splits: the axes of its neighbours, and what kept each from coming.
function missedElement(valueNumber) {
  const missed = found.missed[valueNumber];
  if (!missed) return make("p", { class: "quiet" }, "No axis splits it.");
  const told = missed.map(([dimension, axis, way, at, reason]) =>
    make(
      "li",
      {},
      "dimension ",
      String(dimension),
      ", axis ",
      code(string(axis).replaceAll('"', "")),
      ": ",
      make("span", { class: "why" }, string(way)),
      " ",
      placeLink(place(at)),
      " ",
      string(reason),
    ),
  );
  return make(
    "div",
    {},
    make(
      "p",
      { class: "quiet" },
      told.length
        ? "No axis splits it. What its neighbours have did not come:"
        : "No axis splits it, nor a neighbour along a dimension of it.",
    ),
    make("ul", {}, told),
  );
}

function chainElement({ dimension, steps }) {
  const head = make("h4", {}, "dimension ", String(dimension), ", axis ", code(steps[0].axis.replaceAll('"', "")));
  const list = make("ol", {});
  const hidden = steps.length - FIRST_STEPS - LAST_STEPS;
  const all = () => list.replaceChildren(...steps.map(stepElement));
  if (hidden <= 1) all();
  else {
    const more = make("button", { type: "button", onclick: all }, inWords(hidden, "more step"));
    const ends = [
      ...steps.slice(0, FIRST_STEPS).map(stepElement),
      make("li", { class: "more" }, more),
      ...steps.slice(-LAST_STEPS).map(stepElement),
    ];
    list.append(...ends);
  }
  return make("section", { class: "chain" }, head, list);
}

function stepElement({ value: number, name, why, place: at, previous }) {
  const tensorName = number === NONE ? make("span", {}, name) : valueLink(number);
  return make(
    "li",
    { class: previous === NONE ? "origin" : "" },
    tensorName,
    " ",
    make("span", { class: "why" }, why),
    " ",
    placeLink(at),
  );
}
