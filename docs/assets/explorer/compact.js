/* A small surface that turns by itself, with the strength of the gate. */

import { ease, whileSeen } from "./animation.js";
import { button, element, reducedMotion, slider } from "./dom.js";
import { turnable } from "./figure.js";
import { DEFAULTS } from "./map.js";
import { mesh, totals } from "./measure.js";
import { project, startingBasis } from "./projection.js";
import { number } from "./text.js";

const SIZE = 43;
const SPEED = 0.35; // radians a second
const SEED = 15;

export function fillCompact(place) {
  const settings = { ...DEFAULTS, seed: SEED };
  const [ungated, gated] = [0, 1].map(
    (value) => mesh({ ...settings, strength: value }, SIZE).features,
  );
  const basis = startingBasis(ungated, gated);
  let stop = () => {};
  let turns = !reducedMotion();
  const pause = button("", () => turn(!turns), { className: "cx-pause" });
  const { canvas, view } = turnable(
    "Output of gated attention, drawn as a surface. Arrow keys turn it.",
    () => turn(false),
  );
  const said = element("p", { className: "cx-verdict" });
  const strength = slider(
    "Gate",
    { min: 0, max: 1, step: 0.01, text: (s) => `${Math.round(100 * s)} %` },
    (value) => {
      stop();
      // Only from now on: an animation is not to be read aloud.
      said.setAttribute("aria-live", "polite");
      update(value);
    },
  );
  place.append(
    canvas,
    pause,
    strength.root,
    said,
    element(
      "p",
      { className: "cx-note" },
      "Blue is curved like a saddle, orange like a sphere. ",
      element(
        "a",
        { href: new URL("../../explorer/", import.meta.url).href },
        "Open the curvature explorer",
      ),
    ),
  );

  function turn(on) {
    turns = on;
    pause.textContent = on ? "❚❚" : "▶";
    pause.setAttribute("aria-label", on ? "Stop turning" : "Turn");
  }

  function update(value) {
    settings.strength = value;
    const surface = mesh(settings, SIZE);
    const { points } = project(surface.features, basis);
    view.show(points, surface.curvature, SIZE);
    const { absolute } = totals(settings);
    said.textContent =
      value === 0
        ? "No gate: attention to three tokens is flat."
        : `The gate bends the surface: total curvature ${number(absolute)}.`;
  }

  function set(value) {
    strength.set(value);
    update(value);
  }

  turn(turns);
  if (reducedMotion()) set(1);
  else stop = ease(3000, set);
  whileSeen(canvas, (seconds) => {
    if (turns) view.rotate(SPEED * seconds, 0);
  });
}
