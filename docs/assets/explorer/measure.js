/* Curvature of the map at points, on a mesh, and integrated over the patch. */

import { curvatureAt } from "./curvature.js";
import { createMap, HALF_SIDE, signsOf } from "./map.js";

/* Curvature and totals below this are rounding. */
export const ROUNDING = 1e-10;

/* Nodes where the smallest singular value is below this, times the largest of
 * the patch, are left out: there the image has collapsed. */
const COLLAPSED = 1e-6;
const NODES = 32;

/** Gaussian curvature at points [x, y]; NaN at degenerate ones. */
export function curvatures(settings, points) {
  const map = createMap(settings);
  const signs = signsOf(settings);
  return points.map(([x, y]) => curvatureAt(map(x, y), signs).k);
}

/**
 * ∫|K| dA, ∫K dA and the share of the first that is positive, by the rule of
 * Gauss and Legendre, and the number of nodes left out.
 */
export function totals(settings, resolution = NODES) {
  const { nodes, weights } = gaussLegendre(resolution);
  const found = onGrid(settings, nodes);
  let [absolute, signed, dropped] = [0, 0, 0];
  found.forEach(({ kept, k, volume }, index) => {
    if (!kept) {
      dropped += 1;
      return;
    }
    const i = Math.floor(index / resolution);
    const j = index % resolution;
    const weight = HALF_SIDE ** 2 * weights[i] * weights[j];
    absolute += weight * Math.abs(k) * volume;
    signed += weight * k * volume;
  });
  if (dropped === found.length) [absolute, signed] = [NaN, NaN];
  return {
    absolute,
    signed,
    positive: absolute > ROUNDING ? (absolute + signed) / (2 * absolute) : NaN,
    dropped,
    nodes: found.length,
  };
}

/**
 * The surface over an even mesh of `size` × `size` queries, `size` odd:
 * features and curvature of its points, NaN where degenerate.
 */
export function mesh(settings, size) {
  const steps = Array.from(
    { length: size },
    (_, i) => (2 * i) / (size - 1) - 1,
  );
  const found = onGrid(settings, steps);
  const curvature = found.map(({ kept, k }) => (kept ? k : NaN));
  const known = curvature.filter(Number.isFinite);
  return {
    size,
    features: found.map(({ features }) => features),
    curvature,
    centre: curvature[(size * size - 1) / 2],
    largest: known.length
      ? known.reduce((most, k) => Math.max(most, Math.abs(k)), 0)
      : NaN,
    degenerate: curvature.length - known.length,
  };
}

function onGrid(settings, unit) {
  const map = createMap(settings);
  const signs = signsOf(settings);
  const found = unit.flatMap((x) =>
    unit.map((y) => {
      const jets = map(HALF_SIDE * x, HALF_SIDE * y);
      const features = jets.map((jet) => jet[0]);
      return { features, ...curvatureAt(jets, signs) };
    }),
  );
  const scale = found.reduce(
    (most, { largest }) => (largest > most ? largest : most),
    0,
  );
  for (const point of found)
    point.kept =
      Number.isFinite(point.k) && point.smallest >= COLLAPSED * scale;
  return found;
}

const rules = new Map();

/** Nodes and weights on [−1, 1], by Newton's method on Legendre polynomials. */
export function gaussLegendre(size) {
  if (rules.has(size)) return rules.get(size);
  const nodes = [];
  const weights = [];
  for (let i = 0; i < size; i++) {
    let z = -Math.cos((Math.PI * (i + 0.75)) / (size + 0.5));
    let slope = 1;
    for (let step = 0; step < 8; step++) {
      let [p, before] = [1, 0];
      for (let j = 1; j <= size; j++)
        [p, before] = [((2 * j - 1) * z * p - (j - 1) * before) / j, p];
      slope = (size * (z * p - before)) / (z * z - 1);
      z -= p / slope;
    }
    nodes.push(z);
    weights.push(2 / ((1 - z * z) * slope * slope));
  }
  rules.set(size, { nodes, weights });
  return rules.get(size);
}
