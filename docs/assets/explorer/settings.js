/*
 * What the settings may be, and their place in the address of the page, so that
 * a link shows what it was copied from.
 */

import { FUNCTIONS } from "./functions.js";
import { CONSTANT_CURVATURE, DEFAULTS } from "./map.js";
import { MOST_TOKENS } from "./weights.js";

export const RANGES = {
  strength: { min: 0, max: 1, step: 0.01 },
  kappa: { min: -1, max: 4, step: 0.1 },
  tokens: { min: 2, max: MOST_TOKENS, step: 1 },
  seed: { min: 1, max: 2 ** 31 - 1, step: 1 },
};

export const CHOICES = {
  function: ["none", ...Object.keys(FUNCTIONS), CONSTANT_CURVATURE],
  granularity: ["elementwise", "headwise", "constant"],
  features: [3, 8],
};

const PAUSE = 300; // milliseconds; browsers limit how often an address changes

/** The settings in a fragment such as `#tokens=8`; what is wrong is left out. */
export function readSettings(fragment) {
  const found = {};
  for (const [key, text] of new URLSearchParams(fragment.slice(1))) {
    const value = allowed(key, text);
    if (value !== undefined) found[key] = value;
  }
  return found;
}

function allowed(key, text) {
  if (Object.hasOwn(CHOICES, key))
    return CHOICES[key].find((choice) => String(choice) === text);
  if (!Object.hasOwn(RANGES, key) || text.trim() === "") return undefined;
  const { min, max, step } = RANGES[key];
  const value = Number(text);
  const steps = (value - min) / step;
  const fits =
    value >= min && value <= max && Math.abs(steps - Math.round(steps)) < 1e-6;
  return fits ? value : undefined;
}

/** A function that writes what differs from the defaults into the address. */
export function addressWriter() {
  let timer;
  return (settings) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const changed = Object.entries(settings).filter(
        ([key, value]) => value !== DEFAULTS[key],
      );
      const fragment = new URLSearchParams(changed).toString();
      // Without one, the address stays that of the page.
      const address = fragment ? `#${fragment}` : location.pathname;
      history.replaceState(history.state, "", address);
    }, PAUSE);
  };
}
