/* The surface that can be turned, with its legend. */

import { gradient, paletteOf, percent, TICKS } from "./colours.js";
import { element } from "./dom.js";
import { isDark, SurfaceView } from "./view.js";

const STEP = Math.PI / 24; // of an arrow key
const KEYS = {
  ArrowLeft: [-STEP, 0],
  ArrowRight: [STEP, 0],
  ArrowUp: [0, -STEP],
  ArrowDown: [0, STEP],
};

/** Canvas and view; drag, arrow keys and Home turn it. */
export function turnable(label, onTurn = () => {}) {
  const canvas = element("canvas", {
    className: "cx-canvas",
    tabIndex: 0,
    role: "application",
    "aria-roledescription": "surface that turns",
    "aria-label": label,
  });
  const view = new SurfaceView(canvas);
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Home") view.reset();
    else if (event.key in KEYS) view.rotate(...KEYS[event.key]);
    else return;
    event.preventDefault();
    onTurn();
  });
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
    onTurn();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (last === null) return;
    const [x, y] = [event.clientX, event.clientY];
    view.rotate((x - last[0]) / 130, (last[1] - y) / 130);
    last = [x, y];
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, () => (last = null));
  canvas.addEventListener("dblclick", () => view.reset());
  return { canvas, view };
}

/** The scale of colours, with ticks and the swatch of degenerate points. */
export function legend() {
  const bar = element("div", { className: "cx-bar" });
  const swatch = element("span", { className: "cx-swatch" });
  const paint = () => {
    const palette = paletteOf(isDark());
    bar.style.background = gradient(palette);
    swatch.style.background = `rgb(${palette.degenerate})`;
  };
  paint();
  new MutationObserver(paint).observe(document.body, {
    attributeFilter: ["data-md-color-scheme"],
  });
  const ticks = TICKS.map((tick) =>
    element(
      "span",
      { style: `left: ${percent(tick)}%` },
      String(tick).replace("-", "−"),
    ),
  );
  return element(
    "div",
    { className: "cx-legend", "aria-hidden": "true" },
    element(
      "div",
      { className: "cx-ends" },
      element("span", {}, "like a saddle"),
      element("span", {}, "flat"),
      element("span", {}, "like a sphere"),
    ),
    bar,
    element("div", { className: "cx-ticks" }, ...ticks),
    element(
      "div",
      { className: "cx-key" },
      "Gaussian curvature K",
      element("span", {}, swatch, " degenerate"),
    ),
  );
}
