// The timeline of a step: a lane for computation and for each link. Arrows move between slices and lanes.

const LANE = { height: 26, gap: 6, name: 16 };

function timelineElement() {
  const lanes = found.timeline?.rows.filter(({ slices }) => slices.length) ?? [];
  if (!lanes.length) return null;
  let at = { lane: 0, slice: 0 };
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const frame = make("div", { class: "chart timeline", tabindex: 0, role: "slider", "aria-label": "timeline of a step" });
  frame.setAttribute("aria-valuemin", 0);
  const current = () => sliceOf(lanes[at.lane].slices[at.slice]);
  const redraw = () => frame.replaceChildren(timelineChart(frame.clientWidth, lanes, at));
  const move = (lane, slice) => {
    const within = Math.min(Math.max(lane, 0), lanes.length - 1);
    at = { lane: within, slice: Math.min(Math.max(slice, 0), lanes[within].slices.length - 1) };
    describeSlice(readout, lanes[within].name, current());
    frame.setAttribute("aria-valuemax", lanes[within].slices.length - 1);
    frame.setAttribute("aria-valuenow", at.slice);
    frame.setAttribute("aria-valuetext", readout.textContent);
    redraw();
  };
  const open = () => current().row !== NONE && go({ show: `r${current().row}` });
  const moveTo = (event) => {
    const { lane, slice } = event.target.dataset;
    if (lane !== undefined) move(Number(lane), Number(slice));
  };
  frame.addEventListener("pointerover", moveTo);
  frame.addEventListener("click", (event) => {
    moveTo(event);
    open();
  });
  frame.addEventListener("keydown", (event) => {
    const { lane, slice } = at;
    const moves = {
      ArrowLeft: [lane, slice - 1],
      ArrowRight: [lane, slice + 1],
      ArrowUp: [lane - 1, nearest(lanes[Math.max(lane - 1, 0)], current().start)],
      ArrowDown: [lane + 1, nearest(lanes[Math.min(lane + 1, lanes.length - 1)], current().start)],
      Home: [lane, 0],
      End: [lane, Infinity],
    };
    if (event.key === "Enter") open();
    if (!(event.key in moves)) return;
    event.preventDefault();
    move(...moves[event.key]);
  });
  new ResizeObserver(redraw).observe(frame);
  move(0, 0);
  return make("div", {}, frame, readout);
}

const sliceOf = ([start, seconds, row, op, count, iterations]) => ({ start, seconds, row, op, count, iterations });

// The slice of a lane that runs at a time, or the last one before it.
const nearest = ({ slices }, time) => Math.max(0, slices.findLastIndex(([start]) => start <= time));

function describeSlice(readout, lane, { start, seconds, row: number, op, count, iterations }) {
  const name = string(op).replace("stablehlo.", "");
  const what = count > 1 ? `${count} short operations` : iterations ? `${iterations} more iterations of ${name}` : name;
  const isItself = number !== NONE && row(number).op === string(op);
  readout.replaceChildren(
    `${lane}, at ${shownSeconds(start)} for ${shownSeconds(seconds)}: `,
    isItself ? "" : what,
    number !== NONE && !isItself ? " of " : "",
    number === NONE ? "" : rowLink(number),
    " ",
    (number !== NONE && placeLink(row(number).place)) || "",
  );
}

function timelineChart(width, lanes, at) {
  const inner = Math.max(width - 2 * MARGIN.right, 1);
  const x = (time) => MARGIN.right + (found.timeline.seconds ? (time / found.timeline.seconds) * inner : 0);
  const step = LANE.name + LANE.height + LANE.gap;
  const shapes = lanes.flatMap(({ name, slices }, lane) => [
    draw("text", { x: MARGIN.right, y: lane * step + LANE.name - 3 }, name),
    ...slices.map(([start, seconds, , , , iterations], slice) =>
      draw("rect", {
        class: `slice ${lane ? "link" : ""} ${iterations ? "loop" : ""} ${at.lane === lane && at.slice === slice ? "current" : ""}`,
        x: x(start).toFixed(2),
        width: Math.max(x(start + seconds) - x(start), 0.5).toFixed(2),
        y: lane * step + LANE.name,
        height: LANE.height,
        "data-lane": lane,
        "data-slice": slice,
      }),
    ),
  ]);
  const height = lanes.length * step + MARGIN.bottom;
  return draw(
    "svg",
    { width, height, "aria-hidden": "true" },
    shapes,
    draw("text", { x: MARGIN.right, y: height - 6 }, "0"),
    draw("text", { x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, shownSeconds(found.timeline.seconds)),
  );
}
