// View of the program of one device as Python; a search marks the lines that contain its text.

function pythonView(search) {
  const lines = found.python
    .split("\n")
    .map((text, number) => make("div", { class: "line" }, make("span", { class: "number" }, number + 1), code(text)));
  const element = make("div", { class: "lines rows python", tabindex: 0, "aria-label": "Python" }, ...lines);
  const find = (text) => {
    for (const line of lines) line.classList.toggle("here", text !== "" && line.textContent.includes(text));
    element.querySelector(".here")?.scrollIntoView({ block: "center" });
  };
  find(search);
  return { element, find, refresh: () => {}, none: "" };
}
