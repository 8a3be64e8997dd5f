/* The whole explorer: surface, settings and numbers. */

import { ease } from "./animation.js";
import { button, choice, element, reducedMotion, select, slider } from "./dom.js";
import { legend, turnable } from "./figure.js";
import { FUNCTIONS } from "./functions.js";
import { CONSTANT_CURVATURE, DEFAULTS } from "./map.js";
import { mesh, totals } from "./measure.js";
import { project } from "./projection.js";
import { number, share, spoken, verdict } from "./text.js";
import { MOST_TOKENS } from "./weights.js";

const SIZE = 49;

const PRESETS = [
  ["3 tokens, no gate", { function: "none", tokens: 3 }],
  ["8 tokens, no gate", { function: "none", tokens: 8 }],
  ["Elementwise gate", { granularity: "elementwise" }],
  ["Headwise gate", { granularity: "headwise" }],
  ["Constant gate", { granularity: "constant" }],
  ["Sphere", { function: CONSTANT_CURVATURE, kappa: 1 }],
  ["Hyperbolic", { function: CONSTANT_CURVATURE, kappa: -1 }],
];

const NAMES = [
  ["none", "none"],
  ...Object.keys(FUNCTIONS).map((name) => [name, name]),
  [CONSTANT_CURVATURE, "constant curvature κ"],
];

const NUMBERS = [
  ["centre", "K at the ring", "where x = 0"],
  ["absolute", "∫|K| dA", "how much it curves"],
  ["signed", "∫K dA", "signs cancel here"],
  ["positive", "positive", "share of ∫|K| dA"],
  ["largest", "largest |K|", "of the points drawn"],
  ["degenerate", "degenerate", `of ${SIZE * SIZE} points`],
];

export function fillWhole(place) {
  const settings = { ...DEFAULTS };
  let basis = null;
  let family = null; // of maps whose directions may be compared
  let stop = () => {};
  let announcing = null;

  const { canvas, view } = turnable(
    "Output of gated attention, drawn as a surface and coloured by curvature. Arrow keys turn it, Home turns it back.",
  );
  const said = element("p", { className: "cx-verdict" });
  const live = element("p", { className: "cx-hidden", "aria-live": "polite" });
  const note = element("p", { className: "cx-note" });
  const outputs = Object.fromEntries(
    NUMBERS.map(([key]) => [key, element("dd", { "data-number": key })]),
  );

  const change = (key, read = (value) => value) => (value) =>
    set({ [key]: read(value) });
  const fields = {
    strength: slider("Gate strength", { min: 0, max: 1, step: 0.01, text: (s) => s.toFixed(2) }, change("strength")),
    function: select("Gate function", NAMES, change("function")),
    kappa: slider("Curvature κ", { min: -1, max: 4, step: 0.1, text: (k) => number(Math.round(10 * k) / 10) }, change("kappa")),
    granularity: choice("Granularity", [["elementwise", "elementwise"], ["headwise", "headwise"], ["constant", "constant"]], change("granularity")),
    tokens: slider("Tokens", { min: 2, max: MOST_TOKENS, step: 1 }, change("tokens")),
    features: choice("Features", [["3", "3, as drawn"], ["8", "8, projected"]], change("features", Number)),
  };
  const seed = button("New weights", () => set({ seed: settings.seed + 1 }), { className: "cx-seed" });
  const presets = PRESETS.map(([name, values]) =>
    button(name, () => show(values), { className: "cx-preset" }),
  );

  const { strength, ...others } = fields;
  place.append(
    element("div", { className: "cx-presets", role: "group", "aria-label": "Examples" }, ...presets),
    element("div", { className: "cx-figure" }, canvas, strength.root, legend()),
    said,
    element(
      "dl",
      { className: "cx-numbers" },
      ...NUMBERS.map(([key, name, meaning]) =>
        element("div", {}, element("dt", {}, name), outputs[key], element("dd", { className: "cx-meaning" }, meaning)),
      ),
    ),
    element("div", { className: "cx-controls" }, ...Object.values(others).map((field) => field.root), seed),
    note,
    live,
  );

  function set(values) {
    stop();
    Object.assign(settings, values);
    request();
  }

  /* An example, with the gate closing or opening in sight. */
  function show(values) {
    set({ ...DEFAULTS, features: settings.features, seed: settings.seed, ...values });
    bend();
  }

  function bend() {
    if (reducedMotion() || settings.function === "none") return;
    settings.strength = 0;
    stop = ease(1800, (strength) => {
      settings.strength = Math.round(100 * strength) / 100;
      request();
    });
  }

  let requested = false;
  function request() {
    if (requested) return;
    requested = true;
    requestAnimationFrame(() => {
      requested = false;
      update();
    });
  }

  function update() {
    const surface = mesh(settings, SIZE);
    const found = totals(settings);
    const shown = draw(surface);
    said.textContent = verdict(settings, found);
    outputs.centre.textContent = number(surface.centre);
    outputs.absolute.textContent = number(found.absolute);
    outputs.signed.textContent = number(found.signed);
    outputs.positive.textContent = share(found.positive);
    outputs.largest.textContent = number(surface.largest);
    outputs.degenerate.textContent = String(surface.degenerate);
    note.textContent = [
      `Integrals leave out ${found.dropped} of ${found.nodes} nodes.`,
      `The picture shows ${share(shown)} of the variance.`,
      `Weights: seed ${settings.seed}.`,
    ].join(" ");
    showControls();
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      live.textContent = `${said.textContent} ${spoken(found, surface)}`;
    }, 700);
  }

  function draw(surface) {
    const constant = settings.function === CONSTANT_CURVATURE;
    const current = constant
      ? "κ"
      : [settings.seed, settings.tokens, settings.features].join();
    if (current !== family) {
      family = current;
      // Of the sheet before the gate, or as the formula has them.
      basis = constant
        ? [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        : project(mesh({ ...settings, function: "none" }, SIZE).features, null).basis;
    }
    const projection = project(surface.features, basis);
    basis = projection.basis;
    view.show(projection.points, surface.curvature, SIZE);
    return projection.shown;
  }

  function showControls() {
    for (const [key, field] of Object.entries(fields)) field.set(settings[key]);
    const none = settings.function === "none";
    const constant = settings.function === CONSTANT_CURVATURE;
    fields.kappa.root.hidden = !constant;
    for (const part of [fields.granularity.root, fields.tokens.root, fields.features.root, seed])
      part.hidden = constant;
    fields.strength.input.disabled = none;
    if (none) fields.strength.set(0);
    fields.granularity.input.disabled = none;
    presets.forEach((preset, i) => {
      const matches = Object.entries({ ...DEFAULTS, ...PRESETS[i][1] }).every(
        ([key, value]) => ["features", "seed"].includes(key) || settings[key] === value,
      );
      preset.setAttribute("aria-pressed", String(matches));
    });
  }

  update();
  bend();
}
