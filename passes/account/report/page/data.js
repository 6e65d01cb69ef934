"use strict";

// The report's data: tables that refer to each other by number; NONE stands for the absence of an item.

const NONE = -1;
const found = JSON.parse(document.getElementById("found").textContent);

const string = (number) => (number === NONE ? "" : found.strings[number]);

function place(number) {
  if (number === NONE) return null;
  const [file, line, column] = found.places[number];
  return { number, file: string(file), line, column };
}

const shortPlace = ({ file, line }) => `${file.slice(file.lastIndexOf("/") + 1)}:${line}`;

function tensor(number) {
  const [type, layout, local] = found.tensors[number];
  return { type: found.types[type], layout: found.layouts[layout], local };
}

function value(number) {
  const { name, tensor: tensors, row } = found.values;
  return { number, name: name[number], row: row[number], ...tensor(tensors[number]) };
}

function row(number) {
  const { op, what, scope, place: places, nested, results, operands } = found.rows;
  return {
    number,
    op: string(op[number]),
    what: string(what[number]),
    scope: string(scope[number]),
    place: place(places[number]),
    library: place(found.libraries[number] ?? NONE),
    nested: nested[number],
    results: results[number],
    operands: operands[number],
    seconds: found.seconds.length ? found.seconds[number] : null,
  };
}

function step(number) {
  const { value: values, name, axis, why, place: places, previous } = found.steps;
  return {
    value: values[number],
    name: string(name[number]),
    axis: string(axis[number]),
    why: string(why[number]),
    place: place(places[number]),
    previous: previous[number],
  };
}

// Memoize a computation over all rows.
function once(compute) {
  let known;
  return () => (known ??= compute());
}

const readers = once(() => {
  const rows = new Map();
  found.rows.operands.forEach((operands, number) => {
    for (const operand of new Set(operands)) rows.set(operand, [...(rows.get(operand) ?? []), number]);
  });
  return rows;
});

const total = (items, amount) => items.reduce((sum, item) => sum + amount(item), 0);
const received = total(found.collectives.flat(), (each) => each.bytes);
const peakBytes = found.memory.outside + (found.memory.bytes[found.memory.peak] ?? 0);
