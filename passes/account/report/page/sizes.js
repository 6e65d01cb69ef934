// Human-readable amounts, with the exact number as a tooltip.

const UNITS = ["", "KiB", "MiB", "GiB", "TiB"];

function shownBytes(bytes) {
  let power = 0;
  while (bytes >= 1024 && power < UNITS.length - 1) {
    bytes /= 1024;
    power += 1;
  }
  return power ? `${threeDigits(bytes)} ${UNITS[power]}` : inWords(Math.round(bytes), "byte");
}

function shownSeconds(seconds) {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "us"];
  return `${threeDigits(seconds * factor)} ${unit}`;
}

const threeDigits = (number) => (number >= 100 ? number.toFixed(0) : String(Number(number.toPrecision(3))));
const inWords = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const exact = (bytes) => `${bytes.toLocaleString("en", { maximumFractionDigits: 1 })} bytes`;
const bytesElement = (bytes) => make("span", { class: "amount", title: exact(bytes) }, shownBytes(bytes));

function share(part, whole) {
  const percent = whole ? (100 * part) / whole : 0;
  return `${percent >= 10 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}
