// Propagation chains: the steps that brought each axis to a tensor, back to the user's sharding.

const FIRST_STEPS = 3;
const LAST_STEPS = 2;

function chainOf(number) {
  const steps = [];
  for (let at = number; at !== NONE; at = step(at).previous) steps.push(step(at));
  return steps;
}

// The dimension and the propagation steps of each axis of a tensor.
function chainsOf(valueNumber) {
  const flat = found.reasons[valueNumber] ?? [];
  const chains = [];
  for (let at = 0; at < flat.length; at += 2) chains.push({ dimension: flat[at], steps: chainOf(flat[at + 1]) });
  return chains;
}

function reasonsElement(valueNumber, firstAxes = "") {
  if (!found.reasons.length)
    return make("p", { class: "quiet" }, "Unknown: the input was already propagated.");
  const chains = chainsOf(valueNumber);
  if (!chains.length) return missedElement(valueNumber);
  const isFirst = ({ steps }) => firstAxes.split(", ").includes(steps[0].axis.split('"')[1]);
  return make(
    "div",
    { class: "reasons" },
    [...chains.filter(isFirst), ...chains.filter((chain) => !isFirst(chain))].map(chainElement),
  );
}

// For a replicated tensor: the axes of its neighbors, and the reason why each did not propagate to it.
function missedElement(valueNumber) {
  const missed = found.missed[valueNumber];
  if (!missed) return make("p", { class: "quiet" }, "It is replicated.");
  const items = missed.map(([dimension, axis, way, at, reason]) =>
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
      items.length
        ? "It is replicated. The axes of its neighbors did not propagate to it:"
        : "It is replicated, and its neighbors have no axes along its dimensions.",
    ),
    make("ul", {}, items),
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
