/* The whole explorer: surface, settings and numbers. */

import { ease } from "./animation.js";
import { createControls, createExamples } from "./controls.js";
import { element, reducedMotion } from "./dom.js";
import { legend, turnable } from "./figure.js";
import { CONSTANT_CURVATURE, DEFAULTS } from "./map.js";
import { mesh, totals } from "./measure.js";
import { project, startingBasis } from "./projection.js";
import { createReadout } from "./readout.js";
import { addressWriter, readSettings } from "./settings.js";

const SIZE = 43; // points along each side of the patch
const OPENING = 1800; // milliseconds
const LABEL =
  "Output of gated attention, drawn as a surface and coloured by curvature. " +
  "Arrow keys turn it, Home turns it back.";
const IDENTITY = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];

export function fillWhole(place) {
  const linked = readSettings(location.hash);
  const settings = { ...DEFAULTS, ...linked };
  const writeAddress = addressWriter();
  let basis = null;
  let family = null; // of maps that share directions
  let requested = false;
  let stop = () => {};

  const { canvas, view } = turnable(LABEL);
  const examples = createExamples((values) => {
    set(values);
    open();
  });
  const controls = createControls(set, () => set({ seed: settings.seed + 1 }));
  const readout = createReadout();
  place.append(
    examples.root,
    element(
      "div",
      { className: "cx-figure" },
      readout.said,
      canvas,
      controls.strength,
      legend(),
    ),
    readout.numbers,
    controls.root,
    readout.note,
    readout.live,
  );

  function set(values) {
    stop();
    Object.assign(settings, values);
    writeAddress({ ...settings });
    request();
  }

  /* Shows how the gate bends the surface, from none to all of it. */
  function open() {
    if (reducedMotion() || settings.function === "none") return;
    settings.strength = 0;
    stop = ease(OPENING, (strength) => {
      settings.strength = Math.round(100 * strength) / 100;
      request();
    });
  }

  /* However often settings change, a picture is computed once. */
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
    const shown = draw(surface);
    readout.show(settings, surface, totals(settings), shown);
    controls.show(settings);
    examples.show(settings);
  }

  /* The share of the variance that the picture has. */
  function draw(surface) {
    const constant = settings.function === CONSTANT_CURVATURE;
    const { seed, tokens, features } = settings;
    const current = constant ? "" : [seed, tokens, features].join();
    if (current !== family) {
      family = current;
      basis = constant ? IDENTITY : basisOfFamily();
    }
    const { points, ...projection } = project(surface.features, basis);
    basis = projection.basis;
    view.show(points, surface.curvature, SIZE);
    return projection.shown;
  }

  function basisOfFamily() {
    const [ungated, gated] = [0, 1].map(
      (strength) => mesh({ ...settings, strength }, SIZE).features,
    );
    return startingBasis(ungated, gated);
  }

  // Another link of this kind, as from the text of the page.
  window.addEventListener("hashchange", () => {
    const values = readSettings(location.hash);
    if (Object.keys(values).length > 0) set({ ...DEFAULTS, ...values });
  });

  update();
  if (Object.keys(linked).length === 0) open();
}
