/*
 * 2-jets: [f, f_x, f_y, f_xx, f_xy, f_yy], the value of a function of the plane
 * with its first and second derivatives at one point. Sums, products and
 * compositions carry them along exactly, by the rules of Leibniz and of the
 * chain (forward-mode differentiation).
 */

/** The jet of a x + b y + c. */
export function linear(a, b, c, x, y) {
  return [a * x + b * y + c, a, b, 0, 0, 0];
}

export function constant(c) {
  return [c, 0, 0, 0, 0, 0];
}

/** Adds `factor` · `jet` to `sum`, in place. */
export function accumulate(sum, jet, factor) {
  for (let i = 0; i < 6; i++) sum[i] += factor * jet[i];
}

export function times(f, g) {
  return [
    f[0] * g[0],
    f[1] * g[0] + f[0] * g[1],
    f[2] * g[0] + f[0] * g[2],
    f[3] * g[0] + 2 * f[1] * g[1] + f[0] * g[3],
    f[4] * g[0] + f[1] * g[2] + f[2] * g[1] + f[0] * g[4],
    f[5] * g[0] + 2 * f[2] * g[2] + f[0] * g[5],
  ];
}

/** The jet of φ(f), from [φ, φ', φ''] at f. */
export function compose([value, first, second], f) {
  return [
    value,
    first * f[1],
    first * f[2],
    second * f[1] * f[1] + first * f[3],
    second * f[1] * f[2] + first * f[4],
    second * f[2] * f[2] + first * f[5],
  ];
}

export function exponential(f) {
  const e = Math.exp(f[0]);
  return compose([e, e, e], f);
}

export function power(f, p) {
  const z = f[0];
  const first = p * z ** (p - 1);
  return compose([z ** p, first, p * (p - 1) * z ** (p - 2)], f);
}
