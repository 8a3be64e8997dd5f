/*
 * The map that is drawn: a query x in the plane goes to the context of one
 * attention head, multiplied by a gate.
 *
 *   context(x) = Σ_t softmax_t(key_t · x + bias_t) value_t
 *   y_i(x)     = context_i(x) · ((1 − s) + s φ(G_i · x + g_i))
 *
 * s is the strength of the gate: 0 is none, 1 the gate itself.
 */

import { FUNCTIONS } from "./functions.js";
import {
  accumulate,
  compose,
  constant,
  exponential,
  linear,
  power,
  times,
} from "./jets.js";
import { draw } from "./weights.js";

/* The patch of queries is the square [−1.5, 1.5]². */
export const HALF_SIDE = 1.5;

/* Name of the gate of constant curvature among the functions. */
export const CONSTANT_CURVATURE = "κ";

export const DEFAULTS = Object.freeze({
  strength: 1,
  function: "sigmoid",
  granularity: "elementwise",
  tokens: 3,
  features: 3,
  kappa: 1,
  seed: 12,
});

/* The corners of the patch are at |u| = 0.85, so that κ ≥ −1 keeps the root
 * of 1 + κ|u|² real. */
const QUERY_SCALE = 0.85 / Math.hypot(HALF_SIDE, HALF_SIDE);

/** The map (x, y) ↦ jets of all features. */
export function createMap(settings) {
  if (settings.function === CONSTANT_CURVATURE)
    return constantCurvature(settings);
  const { tokens, gates } = draw(settings.seed);
  const used = tokens.slice(0, settings.tokens);
  const values = used.map(({ value }) => value.slice(0, settings.features));
  const factor = gateFactors(gates, settings);
  return (x, y) =>
    attention(used, values, x, y).map((context, i) =>
      times(context, factor(i, x, y)),
    );
}

/**
 * The signs of the inner product that curvature is measured with, or null for
 * the Euclidean one.
 */
export function signsOf(settings) {
  const hyperbolic =
    settings.function === CONSTANT_CURVATURE && settings.kappa < 0;
  return hyperbolic ? [1, 1, -1] : null;
}

function attention(tokens, values, x, y) {
  const scores = tokens.map(({ key, bias }) =>
    linear(key[0], key[1], bias, x, y),
  );
  const largest = Math.max(...scores.map((score) => score[0]));
  const total = constant(0);
  const sums = values[0].map(() => constant(0));
  scores.forEach((score, t) => {
    score[0] -= largest;
    const weight = exponential(score);
    accumulate(total, weight, 1);
    sums.forEach((sum, i) => accumulate(sum, weight, values[t][i]));
  });
  const inverse = power(total, -1);
  return sums.map((sum) => times(sum, inverse));
}

function gateFactors(gates, settings) {
  const phi = FUNCTIONS[settings.function];
  if (phi === undefined) return () => constant(1);
  return (i, x, y) => {
    const { kernel, bias } = gates[settings.granularity === "headwise" ? 0 : i];
    const moves = settings.granularity === "constant" ? 0 : 1;
    const logit = linear(moves * kernel[0], moves * kernel[1], bias, x, y);
    return mixed(compose(phi(logit[0]), logit), settings.strength);
  };
}

/**
 * (u, 1/√|κ|) · (1 + κ|u|²)^(−½): a sphere for κ > 0 and, in the inner product
 * of signs (1, 1, −1), a hyperbolic plane for κ < 0. u is the query itself,
 * to scale: there is no attention here.
 */
function constantCurvature({ kappa, strength }) {
  const lift = constant(kappa === 0 ? 1 : 1 / Math.sqrt(Math.abs(kappa)));
  return (x, y) => {
    const u = [
      linear(QUERY_SCALE, 0, 0, x, y),
      linear(0, QUERY_SCALE, 0, x, y),
    ];
    const square = constant(1);
    for (const component of u)
      accumulate(square, times(component, component), kappa);
    const factor = mixed(power(square, -0.5), strength);
    return [...u, lift].map((component) => times(component, factor));
  };
}

function mixed(gate, strength) {
  const factor = constant(1 - strength);
  accumulate(factor, gate, strength);
  return factor;
}
