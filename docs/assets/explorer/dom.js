/* Elements of the page. */

/** An element with properties, and children: elements or texts. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes("-") || name === "role" || name === "for")
      made.setAttribute(name, value);
    else made[name] = value;
  made.append(...children);
  return made;
}

let made = 0;

/** A new id, for labels. */
export function newId(name) {
  made += 1;
  return `curvature-${name}-${made}`;
}

/** A labelled slider that shows its value; `text` writes it. */
export function slider(label, { min, max, step, text = String }, onInput) {
  const id = newId("slider");
  const input = element("input", { type: "range", id, min, max, step });
  const value = element("output", { className: "cx-value", for: id });
  const set = (number) => {
    input.value = number;
    value.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", value.textContent);
    const filled = (100 * (input.value - min)) / (max - min);
    input.style.setProperty("--cx-filled", `${filled}%`);
  };
  input.addEventListener("input", () => {
    set(input.value);
    onInput(Number(input.value));
  });
  const root = element(
    "div",
    { className: "cx-field" },
    element("label", { htmlFor: id }, label),
    value,
    input,
  );
  return { root, input, set };
}

export function select(label, options, onChange) {
  const id = newId("select");
  const input = element(
    "select",
    { id },
    ...options.map(([value, text]) => element("option", { value }, text)),
  );
  input.addEventListener("change", () => onChange(input.value));
  const root = element(
    "div",
    { className: "cx-field" },
    element("label", { htmlFor: id }, label),
    input,
  );
  return { root, input, set: (value) => (input.value = value) };
}

/** Radio buttons side by side. */
export function choice(label, options, onChange) {
  const name = newId("choice");
  const inputs = options.map(([value]) =>
    element("input", { type: "radio", name, value }),
  );
  const group = element(
    "div",
    { className: "cx-choice" },
    ...options.map(([, text], i) =>
      element("label", {}, inputs[i], element("span", {}, text)),
    ),
  );
  group.addEventListener("change", (event) => onChange(event.target.value));
  const root = element(
    "fieldset",
    { className: "cx-field" },
    element("legend", {}, label),
    group,
  );
  const set = (value) =>
    inputs.forEach((input) => (input.checked = input.value === String(value)));
  return { root, input: root, set };
}

export function button(text, onClick, properties = {}) {
  const made = element("button", { type: "button", ...properties }, text);
  made.addEventListener("click", onClick);
  return made;
}

export function reducedMotion() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
