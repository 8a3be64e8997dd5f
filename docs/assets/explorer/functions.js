/* Gate functions φ, each as z ↦ [φ, φ', φ'']. */

function logistic(z) {
  return z >= 0 ? 1 / (1 + Math.exp(-z)) : 1 - 1 / (1 + Math.exp(z));
}

function sigmoid(z) {
  const s = logistic(z);
  const first = s * (1 - s);
  return [s, first, first * (1 - 2 * s)];
}

function tanh(z) {
  const t = Math.tanh(z);
  const first = 1 - t * t;
  return [t, first, -2 * t * first];
}

/* Φ by Marsaglia's series: ½ + ϕ(z) (z + z³/3 + z⁵/(3·5) + …). */
function normal(z) {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (Math.abs(z) > 7) return [z > 0 ? 1 : 0, density];
  let sum = z;
  let last = z;
  for (let i = 3; Math.abs(last) > 1e-17 * Math.abs(sum); i += 2) {
    last *= (z * z) / i;
    sum += last;
  }
  return [0.5 + density * sum, density];
}

function gelu(z) {
  const [probability, density] = normal(z);
  return [z * probability, probability + z * density, density * (2 - z * z)];
}

function silu(z) {
  const [s, first, second] = sigmoid(z);
  return [z * s, s + z * first, 2 * first + z * second];
}

function softplus(z) {
  const [s, first] = sigmoid(z);
  return [Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))), s, first];
}

function exponential(z) {
  const e = Math.exp(z);
  return [e, e, e];
}

export const FUNCTIONS = {
  sigmoid,
  tanh,
  GELU: gelu,
  SiLU: silu,
  softplus,
  ReLU: (z) => (z > 0 ? [z, 1, 0] : [0, 0, 0]),
  exp: exponential,
  identity: (z) => [z, 1, 0],
};
