/* The settings of the explorer: examples, and a field for each of them. */

import { button, choice, element, select, slider } from "./dom.js";
import { CONSTANT_CURVATURE, DEFAULTS } from "./map.js";
import { CHOICES, RANGES } from "./settings.js";
import { number } from "./text.js";

const EXAMPLES = [
  ["3 tokens, no gate", { function: "none", tokens: 3 }],
  ["8 tokens, no gate", { function: "none", tokens: 8 }],
  ["Elementwise gate", { granularity: "elementwise" }],
  ["Headwise gate", { granularity: "headwise" }],
  ["Constant gate", { granularity: "constant" }],
  ["Sphere", { function: CONSTANT_CURVATURE, kappa: 1 }],
  ["Hyperbolic", { function: CONSTANT_CURVATURE, kappa: -1 }],
];

const LABELS = {
  [CONSTANT_CURVATURE]: "constant curvature κ",
  3: "3, as drawn",
  8: "8, projected",
};

/** Buttons that call `onChoose` with all settings but features and seed. */
export function createExamples(onChoose) {
  const { features, seed, ...defaults } = DEFAULTS;
  const examples = EXAMPLES.map(([name, values]) => {
    const settings = { ...defaults, ...values };
    return { settings, made: button(name, () => onChoose(settings)) };
  });
  const root = element(
    "div",
    { className: "cx-examples", role: "group", "aria-label": "Examples" },
    ...examples.map(({ made }) => made),
  );
  const show = (current) => {
    for (const { settings, made } of examples) {
      const same = Object.keys(settings).every(
        (key) => settings[key] === current[key],
      );
      made.setAttribute("aria-pressed", String(same));
    }
  };
  return { root, show };
}

/**
 * Fields that call `onChange` with what is new: the strength of the gate by
 * itself, and all the others. `onSeed` is for other weights.
 */
export function createControls(onChange, onSeed) {
  const fields = createFields(onChange);
  const { strength, ...others } = fields;
  const seed = button("New weights", onSeed);
  const root = element(
    "div",
    { className: "cx-controls" },
    ...Object.values(others).map((field) => field.root),
    seed,
  );
  const show = (settings) => {
    for (const [key, field] of Object.entries(fields)) field.set(settings[key]);
    const none = settings.function === "none";
    const constant = settings.function === CONSTANT_CURVATURE;
    const { kappa, granularity, tokens, features } = fields;
    kappa.root.hidden = !constant;
    for (const part of [granularity.root, tokens.root, features.root, seed])
      part.hidden = constant;
    strength.input.disabled = granularity.input.disabled = none;
    if (none) strength.set(0);
  };
  return { strength: strength.root, root, show };
}

function createFields(onChange) {
  const change = (key) => (value) => onChange({ [key]: value });
  const options = (key) =>
    CHOICES[key].map((value) => [value, LABELS[value] ?? String(value)]);
  return {
    strength: slider(
      "Gate strength",
      { ...RANGES.strength, text: (s) => s.toFixed(2) },
      change("strength"),
    ),
    function: select("Gate function", options("function"), change("function")),
    kappa: slider(
      "Curvature κ",
      { ...RANGES.kappa, text: number },
      change("kappa"),
    ),
    granularity: choice(
      "Granularity",
      options("granularity"),
      change("granularity"),
    ),
    tokens: slider("Tokens", RANGES.tokens, change("tokens")),
    features: choice("Features", options("features"), (value) =>
      onChange({ features: Number(value) }),
    ),
  };
}
