// A virtualized list: its rows have one height, and only the visible ones are in the DOM.

const ROW_HEIGHT = 30;
const BEYOND = 12;

class List {
  // `drawRow(item)` returns an element; Enter and click call `open(item)`, the arrow keys `fold(item, folded)`.
  constructor({ label, header, drawRow, open, fold = () => {}, isShown, height = ROW_HEIGHT }) {
    Object.assign(this, { drawRow, open, fold, isShown, height });
    this.items = [];
    this.current = 0;
    this.id = `list-${label}`;
    this.space = make("div", { class: "space" });
    const top = make("div", { class: "header row", role: "presentation" }, ...header);
    this.body = make("div", { class: "rows", tabindex: 0, role: "listbox", "aria-label": label }, top, this.space);
    this.element = make("div", { class: `list ${label}` }, this.body);
    this.body.addEventListener("scroll", () => this.draw(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.space.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.resize()).observe(this.body);
  }

  show(items) {
    this.items = items;
    this.current = Math.max(0, items.findIndex(this.isShown));
    this.space.style.height = `${items.length * this.height}px`;
    this.center();
    this.redraw();
  }

  // Center the current row once the list is on the page and has a height.
  resize() {
    if (!this.hasHeight) this.center();
    this.hasHeight = this.body.clientHeight > 0;
    this.redraw();
  }

  redraw() {
    this.drawn = null;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / this.height) - BEYOND);
    const last = Math.min(
      this.items.length,
      Math.ceil((this.body.scrollTop + this.body.clientHeight) / this.height) + BEYOND,
    );
    if (this.drawn === `${first} ${last}`) return;
    this.drawn = `${first} ${last}`;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.row(index));
    this.space.replaceChildren(...rows);
    this.body.toggleAttribute("data-empty", this.items.length === 0);
  }

  row(index) {
    const element = this.drawRow(this.items[index]);
    element.classList.add("row");
    element.classList.toggle("current", index === this.current);
    fill(
      element,
      { role: "option", id: `${this.id}-${index}`, "data-index": index, "--top": `${index * this.height}px` },
      [],
    );
    element.setAttribute("aria-selected", String(this.isShown(this.items[index])));
    return element;
  }

  move(index) {
    this.current = Math.min(Math.max(index, 0), this.items.length - 1);
    this.body.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    this.reveal();
    this.redraw();
  }

  center() {
    this.body.scrollTop = Math.max(0, (this.current + 1) * this.height - this.body.clientHeight / 2);
  }

  reveal() {
    const top = this.current * this.height;
    const view = this.body.clientHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + 2 * this.height > this.body.scrollTop + view) this.body.scrollTop = top + 2 * this.height - view;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.height) - 1);
    const item = this.items[this.current];
    const actions = {
      ArrowDown: () => this.move(this.current + 1),
      ArrowUp: () => this.move(this.current - 1),
      PageDown: () => this.move(this.current + page),
      PageUp: () => this.move(this.current - page),
      Home: () => this.move(0),
      End: () => this.move(this.items.length - 1),
      ArrowRight: () => this.fold(item, false),
      ArrowLeft: () => this.fold(item, true),
      Enter: () => this.open(item),
    };
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (item === undefined || !isPlain || !(event.key in actions) || event.target.closest("a, button")) return;
    event.preventDefault();
    actions[event.key]();
  }

  click(event) {
    const element = event.target.closest(".row");
    if (!element || event.target.closest("a, button")) return;
    this.move(Number(element.dataset.index));
    this.open(this.items[this.current]);
  }
}
