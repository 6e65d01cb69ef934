// View of a device's memory over the program, and of the tensors that are live at the peak.

const CHART_HEIGHT = 220;
const MARGIN = { left: 64, right: 12, top: 12, bottom: 24 };
const TICKS = 4;
const MOST_REPLICATED = 8;

function memoryView(search) {
  const list = new List({
    label: "held",
    header: headings("bytes per device", "share", "tensor", "type", "operation", "source"),
    drawRow: heldRow,
    open: ({ value: number, row: at }) => go({ show: number === NONE ? `r${at}` : `v${number}` }),
    isShown: ({ value: number, row: at }) =>
      address.show !== "" && (address.show === `v${number}` || address.show === `r${at}`),
  });
  list.show(heldItems(search));
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const chart = memoryChart(readout);
  const others = found.memory.others;
  const element = make(
    "div",
    { class: "memory" },
    chart,
    readout,
    replicatedElement(),
    make("h3", {}, `Live at the peak, besides ${shownBytes(found.memory.outside)} of arguments and results`),
    list.element,
    others > 0 && make("p", { class: "quiet" }, `and ${shownBytes(others)} in smaller tensors`),
  );
  return {
    element,
    find: (text) => list.show(heldItems(text)),
    refresh: () => list.redraw(),
    none: "Only arguments and results are live.",
  };
}

function heldItems(search) {
  const items = found.memory.held.map(([at, number, op, type, bytes]) => ({
    row: at,
    value: number,
    op: string(op),
    type: found.types[type],
    bytes,
  }));
  return items.filter((item) => heldText(item).includes(search.toLowerCase()));
}

function heldText({ value: number, op, type, row: at }) {
  const where = at === NONE || !row(at).place ? "" : `${row(at).place.file}:${row(at).place.line}`;
  return `${number === NONE ? "" : value(number).name} ${op} ${type.text} ${where}`.toLowerCase();
}

function heldRow({ value: number, op, type, row: at, bytes }) {
  return make(
    "div",
    {},
    bytesElement(bytes),
    make("span", { class: "bar", "--part": bytes / peakBytes }, share(bytes, peakBytes)),
    make("span", {}, number === NONE ? "" : valueLink(number)),
    code(type.text),
    make("span", { dir: "auto" }, op.replace("stablehlo.", "")),
    make("span", {}, at === NONE ? "" : placeLink(row(at).place)),
  );
}

// The tensors with the most bytes that are redundant because of replication.
function replicatedElement() {
  const spared = ({ tensor: number }) => tensor(number).local * (1 - 1 / tensor(number).layout.copies);
  const numbers = found.arrays.map((_, number) => number).filter((number) => spared(found.arrays[number]) > 0);
  const largest = numbers
    .sort((one, other) => spared(found.arrays[other]) - spared(found.arrays[one]))
    .slice(0, MOST_REPLICATED);
  if (!largest.length) return null;
  const named = largest.map((number) => {
    const { local, layout } = tensor(found.arrays[number].tensor);
    return make(
      "li",
      {},
      link({ show: `a${number}` }, {}, arrayName(found.arrays[number])),
      ": ",
      bytesElement(local),
      `, replicated on ${inWords(layout.copies, "device")}`,
    );
  });
  return make("details", { class: "replicated" }, make("summary", {}, "Large replicated tensors"), make("ul", {}, named));
}

// Redrawn for each width; each pixel shows the maximum of its operations.
function memoryChart(readout) {
  const { bytes, peak } = found.memory;
  let at = Math.max(peak, 0);
  const frame = make("div", {
    class: "chart",
    tabindex: 0,
    role: "slider",
    "aria-label": "memory over the program",
    "aria-valuemin": 0,
    "aria-valuemax": bytes.length - 1,
  });
  const describe = () => {
    if (!bytes.length) return;
    const source = found.memory.rows[at];
    const what = source === NONE ? "an operation that partitioning inserted" : rowLink(source);
    readout.replaceChildren(
      `${at === peak ? "The peak, o" : "O"}peration ${(at + 1).toLocaleString("en")} of ${bytes.length.toLocaleString("en")}: `,
      bytesElement(found.memory.outside + bytes[at]),
      " at ",
      what,
      " ",
      (source !== NONE && placeLink(row(source).place)) || "",
    );
    frame.setAttribute("aria-valuenow", at);
    frame.setAttribute("aria-valuetext", readout.textContent);
  };
  const move = (to) => {
    at = Math.min(Math.max(to, 0), bytes.length - 1);
    describe();
    redraw();
  };
  const redraw = () => frame.replaceChildren(chartOf(frame.clientWidth, at));
  const momentAt = (event) => {
    const { left, width } = frame.getBoundingClientRect();
    return Math.round(
      ((event.clientX - left - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * (bytes.length - 1),
    );
  };
  const open = () => found.memory.rows[at] !== NONE && bytes.length && go({ show: `r${found.memory.rows[at]}` });
  frame.addEventListener("pointermove", (event) => move(momentAt(event)));
  frame.addEventListener("pointerleave", () => move(peak));
  frame.addEventListener("click", open);
  frame.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50, Home: -Infinity, End: Infinity };
    if (event.key === "Enter") open();
    if (!(event.key in steps)) return;
    event.preventDefault();
    move(at + steps[event.key]);
  });
  new ResizeObserver(redraw).observe(frame);
  describe();
  return frame;
}

function chartOf(width, at) {
  const { bytes, outside, peak } = found.memory;
  const [inner, height] = [Math.max(width - MARGIN.left - MARGIN.right, 1), CHART_HEIGHT - MARGIN.top - MARGIN.bottom];
  const x = (moment) => MARGIN.left + (bytes.length > 1 ? (moment / (bytes.length - 1)) * inner : 0);
  const y = (amount) => MARGIN.top + height * (1 - amount / (peakBytes || 1));
  const points = highest(bytes, Math.ceil(inner)).map(
    ([moment, most]) => `${x(moment).toFixed(1)},${y(outside + most).toFixed(1)}`,
  );
  const floor = y(0);
  const ticks = Array.from({ length: TICKS + 1 }, (_, tick) => (peakBytes * tick) / TICKS);
  return draw(
    "svg",
    { width, height: CHART_HEIGHT, "aria-hidden": "true" },
    ticks.flatMap((amount) => [
      draw("line", { class: "tick", x1: MARGIN.left, x2: MARGIN.left + inner, y1: y(amount), y2: y(amount) }),
      draw("text", { x: MARGIN.left - 6, y: y(amount) + 4, "text-anchor": "end" }, shownBytes(amount)),
    ]),
    draw("polygon", {
      class: "inside",
      points: `${MARGIN.left},${floor} ${points.join(" ")} ${MARGIN.left + inner},${floor}`,
    }),
    draw("rect", { class: "outside", x: MARGIN.left, y: y(outside), width: inner, height: floor - y(outside) }),
    draw("text", { x: MARGIN.left + 6, y: Math.min(y(outside) + 14, floor - 4) }, "arguments and results"),
    draw("line", { class: "cursor", x1: x(at), x2: x(at), y1: MARGIN.top, y2: floor }),
    peak !== NONE && draw("circle", { class: "peak", cx: x(peak), cy: y(outside + bytes[peak]), r: 4 }),
    draw("text", { x: MARGIN.left, y: CHART_HEIGHT - 6 }, "first operation"),
    draw("text", { x: MARGIN.left + inner, y: CHART_HEIGHT - 6, "text-anchor": "end" }, "last"),
  );
}

// The operation with the most live bytes in each of `stretches` intervals.
function highest(bytes, stretches) {
  const size = Math.max(1, bytes.length / stretches);
  const found = [];
  for (let start = 0; start < bytes.length; start += size) {
    let best = Math.floor(start);
    for (let moment = best; moment < Math.min(start + size, bytes.length); moment += 1)
      if (bytes[moment] > bytes[best]) best = moment;
    found.push([best, bytes[best]]);
  }
  return found;
}
