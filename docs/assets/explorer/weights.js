/*
 * Standard normal weights from a seed, the same in any language: mulberry32 for
 * uniform numbers and Box–Muller for normal ones. Tokens and features have
 * numbers of their own, so that adding one leaves the others where they are.
 */

export const MOST_TOKENS = 16;
export const MOST_FEATURES = 8;

/** Uniform numbers in [0, 1) with 32 bits. */
export function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Standard normal numbers, one of each pair of uniform ones. */
export function normals(seed) {
  const uniform = mulberry32(seed);
  return () => {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  };
}

/**
 * Tokens with key, bias of the score and value; gates with the kernel and the
 * bias of their logits.
 */
export function draw(seed) {
  const token = normals(2 * seed);
  const gate = normals(2 * seed + 1);
  const take = (next, size) => Array.from({ length: size }, next);
  return {
    tokens: take(
      () => ({
        key: take(token, 2),
        bias: token(),
        value: take(token, MOST_FEATURES),
      }),
      MOST_TOKENS,
    ),
    gates: take(() => ({ kernel: take(gate, 2), bias: gate() }), MOST_FEATURES),
  };
}
