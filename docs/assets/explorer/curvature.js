/*
 * Gaussian curvature of a surface in any number of dimensions, from the 2-jets
 * of its coordinates, as `keras_gating.geometry` computes it: an orthonormal
 * frame of the tangent plane, the normal parts of the second derivatives on
 * that frame, and the equation of Gauss.
 */

/* √ε of 64-bit floats: below this ratio of singular values a point is
 * degenerate, its image has lost a dimension. */
const THRESHOLD = 2 ** -26;

/**
 * Curvature `k` (NaN where degenerate), area element `volume`, and the singular
 * values of the Jacobian.
 *
 * `signs` are those of an indefinite inner product; null is the Euclidean one.
 */
export function curvatureAt(jets, signs = null) {
  const [first, second, h11, h12, h22] = [1, 2, 3, 4, 5].map((order) =>
    jets.map((jet) => jet[order]),
  );
  const { frame, upper } = orthonormal(first, second);
  const [r11, r12, r22] = upper;
  // The inverse of the upper triangular factor.
  const [a, b, c] = [1 / r11, -r12 / (r11 * r22), 1 / r22];
  const largest = spectralNorm(r11, r12, 0, r22);
  const smallest = 1 / spectralNorm(a, b, 0, c);
  const gram = gramOf(frame, signs);
  const regular = smallest > THRESHOLD * largest && gram.least > THRESHOLD;

  const along = combine(b, h11, c, h12);
  const across = combine(b, h12, c, h22);
  const normal = (vector) => normalPart(vector, frame, gram.inverse, signs);
  const n11 = normal(h11.map((h) => a * a * h));
  const n12 = normal(along.map((h) => a * h));
  const n22 = normal(combine(b, along, c, across));
  const k =
    (inner(n11, n22, signs) - inner(n12, n12, signs)) / gram.determinant;
  return {
    k: regular ? k : NaN,
    volume: r11 * r22 * Math.sqrt(Math.abs(gram.determinant)),
    largest,
    smallest,
  };
}

/* Gram–Schmidt, applied twice. */
function orthonormal(first, second) {
  const r11 = Math.sqrt(inner(first, first));
  const e = first.map((component) => component / r11);
  let rest = second;
  let r12 = 0;
  for (let pass = 0; pass < 2; pass++) {
    const found = inner(e, rest);
    rest = combine(1, rest, -found, e);
    r12 += found;
  }
  const r22 = Math.sqrt(inner(rest, rest));
  const f = rest.map((component) => component / r22);
  return { frame: [e, f], upper: [r11, r12, r22] };
}

/* Of the frame, in the inner product: the identity in the Euclidean one. */
function gramOf([e, f], signs) {
  if (signs === null) return { determinant: 1, least: 1, inverse: null };
  const [ee, ef, ff] = [
    inner(e, e, signs),
    inner(e, f, signs),
    inner(f, f, signs),
  ];
  const determinant = ee * ff - ef * ef;
  const inverse = [ff / determinant, -ef / determinant, ee / determinant];
  const [p, q, r] = inverse;
  return { determinant, inverse, least: 1 / spectralNorm(p, q, q, r) };
}

function normalPart(vector, [e, f], inverse, signs) {
  let rest = vector;
  // What rounding leaves of the tangential part, the second pass takes.
  for (let pass = 0; pass < 2; pass++) {
    let [onE, onF] = [inner(e, rest, signs), inner(f, rest, signs)];
    if (inverse !== null) {
      const [p, q, r] = inverse;
      [onE, onF] = [p * onE + q * onF, q * onE + r * onF];
    }
    rest = rest.map((component, i) => component - onE * e[i] - onF * f[i]);
  }
  return rest;
}

function spectralNorm(a, b, c, d) {
  return (Math.hypot(a + d, b - c) + Math.hypot(a - d, b + c)) / 2;
}

function combine(a, u, b, v) {
  return u.map((component, i) => a * component + b * v[i]);
}

function inner(u, v, signs = null) {
  let sum = 0;
  for (let i = 0; i < u.length; i++)
    sum += (signs === null ? 1 : signs[i]) * u[i] * v[i];
  return sum;
}
