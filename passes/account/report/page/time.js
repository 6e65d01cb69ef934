// View of the predicted compute time of each operation; operations of repeated layers share a row.

function timeView(search) {
  const groups = timeGroups();
  const whole = total(groups, ({ seconds }) => seconds);
  const list = new List({
    label: "time",
    header: headings("compute time", "share", "operation", "runs", "type", "source"),
    drawRow: (group) => timeRow(group, whole),
    open: ({ row: number }) => go({ show: number === NONE ? "" : `r${number}` }),
    isShown: ({ row: number }) => address.show === `r${number}`,
  });
  const find = (text) => list.show(groups.filter((group) => timeText(group).includes(text.toLowerCase())));
  find(search);
  return {
    element: make("div", { class: "timed" }, timelineElement(), list.element),
    find,
    refresh: () => list.redraw(),
    none: "No operation takes time.",
  };
}

const timeGroups = once(() => {
  const groups = new Map();
  found.seconds.forEach((seconds, number) => {
    if (!seconds) return;
    const first = firstAlike(number);
    const group = groups.get(first) ?? { row: first < found.rows.op.length ? first : NONE, seconds: 0, count: 0 };
    groups.set(first, { ...group, seconds: group.seconds + seconds, count: group.count + 1 });
  });
  return [...groups.values()].sort((one, other) => other.seconds - one.seconds);
});

// The counterpart of a row in the first of its repeated layers.
function firstAlike(number) {
  const [start, period] = found.folds.find(([from, rows, times]) => number >= from && number < from + rows * times) ?? [
    number,
    1,
  ];
  return start + ((number - start) % period);
}

const timeText = ({ row: number }) =>
  number === NONE
    ? ""
    : `${row(number).op} ${row(number).scope} ${row(number).place?.file}:${row(number).place?.line}`.toLowerCase();

function timeRow({ row: number, seconds, count }, whole) {
  const shown = number === NONE ? null : row(number);
  const [first] = shown ? shown.results.map(value) : [];
  return make(
    "div",
    {},
    make("span", { class: "amount" }, shownSeconds(seconds)),
    make("span", { class: "bar", "--part": whole ? seconds / whole : 0 }, share(seconds, whole)),
    make(
      "span",
      { dir: "auto" },
      shown
        ? [first && [valueLink(first.number), " = "], make("b", {}, shown.op.replace("stablehlo.", ""))]
            .flat()
            .filter(Boolean)
        : "operations that partitioning inserted",
    ),
    make("span", { class: "quiet" }, count > 1 ? `× ${count}` : ""),
    first ? code(first.type.text) : make("span"),
    make("span", {}, shown && placeLink(shown.place)),
  );
}
