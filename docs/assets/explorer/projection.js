/*
 * From any number of features to three: the principal directions of the
 * surface. While sliders move, the directions stay as close to the last ones
 * as they can, so that the picture does not jump.
 */

/**
 * Points in three dimensions, centred and scaled to fit a ball of radius 1.
 *
 * `previous` is the basis of the last picture, or null for a new one; `shown` is
 * the share of the variance that three directions keep.
 */
export function project(features, previous) {
  const width = features[0].length;
  const mean = Array.from({ length: width }, (_, i) => average(features, i));
  const centred = features.map((f) => f.map((value, i) => value - mean[i]));
  const { values, vectors } = eigen(covariance(centred));
  const principal = vectors.slice(0, 3);
  const basis = previous
    ? aligned(principal, previous)
    : signed(principal, centred);
  const points = fitted(
    centred.map((f) => basis.map((vector) => dot(vector, f))),
  );
  const sum = (numbers) => numbers.reduce((total, value) => total + value, 0);
  return { points, basis, shown: sum(values.slice(0, 3)) / sum(values) };
}

/* Into the ball of radius 1, by the middle of the box around them. */
function fitted(points) {
  const middle = [0, 1, 2].map((i) => {
    const along = points.map((point) => point[i]);
    return (Math.min(...along) + Math.max(...along)) / 2;
  });
  const moved = points.map((point) =>
    point.map((value, i) => value - middle[i]),
  );
  const radius = Math.max(...moved.map((point) => Math.hypot(...point)));
  return moved.map((point) => point.map((value) => value / (radius || 1)));
}

/**
 * The basis to begin with: the two directions of the sheet without its gate,
 * and the one that the gate bends it into, upwards.
 */
export function startingBasis(ungated, gated) {
  const { basis } = project(gated, project(ungated, null).basis);
  const heights = gated.map((features) => [dot(basis[2], features)]);
  const middle = heights[(heights.length - 1) / 2][0];
  if (middle >= average(heights, 0)) return basis;
  const [first, ...others] = basis;
  return [first, ...others.map((vector) => vector.map((value) => -value))];
}

/* Directions have no sign of their own: a corner of the patch gives it to the
 * first two, and in three dimensions the third is that of a right hand. */
function signed([first, second, third], [corner]) {
  const towards = (vector) => {
    const sign = dot(vector, corner) < 0 ? -1 : 1;
    return vector.map((value) => sign * value);
  };
  const [u, v] = [towards(first), towards(second)];
  const hand = [0, 1, 2].map((i) => {
    const [j, k] = [(i + 1) % 3, (i + 2) % 3];
    return u[j] * v[k] - u[k] * v[j];
  });
  return [u, v, third.length === 3 ? hand : third];
}

/* The basis of the same space that is next to another one: the old vectors,
 * projected on the space and made orthonormal. */
function aligned(space, previous) {
  const basis = [];
  for (const old of [...previous, ...space]) {
    let vector = old.map(() => 0);
    for (const direction of space) add(vector, direction, dot(direction, old));
    for (const done of basis) add(vector, done, -dot(done, vector));
    const size = Math.sqrt(dot(vector, vector));
    if (size > 0.1 && basis.length < 3)
      basis.push(vector.map((value) => value / size));
  }
  return basis;
}

function covariance(rows) {
  const width = rows[0].length;
  const matrix = Array.from({ length: width }, () => new Array(width).fill(0));
  for (const row of rows)
    for (let i = 0; i < width; i++)
      for (let j = 0; j < width; j++) matrix[i][j] += row[i] * row[j];
  return matrix;
}

/* Eigenvalues in descending order with their vectors, by Jacobi rotations. */
export function eigen(symmetric) {
  const a = symmetric.map((row) => [...row]);
  const size = a.length;
  const v = a.map((row, i) => row.map((_, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 12; sweep++)
    for (let p = 0; p < size; p++)
      for (let q = p + 1; q < size; q++) rotate(a, v, p, q);
  const order = a.map((_, i) => i).sort((i, j) => a[j][j] - a[i][i]);
  return {
    values: order.map((i) => Math.max(a[i][i], 0)),
    vectors: order.map((i) => v.map((row) => row[i])),
  };
}

/* Makes a[p][q] zero. */
function rotate(a, v, p, q) {
  if (a[p][q] === 0) return;
  const angle = Math.atan2(2 * a[p][q], a[q][q] - a[p][p]) / 2;
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  const turn = (row) => {
    [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
  };
  a.forEach(turn);
  v.forEach(turn);
  for (let j = 0; j < a.length; j++)
    [a[p][j], a[q][j]] = [c * a[p][j] - s * a[q][j], s * a[p][j] + c * a[q][j]];
}

function average(rows, i) {
  return rows.reduce((sum, row) => sum + row[i], 0) / rows.length;
}

function add(vector, direction, factor) {
  for (let i = 0; i < vector.length; i++) vector[i] += factor * direction[i];
}

function dot(u, v) {
  return u.reduce((sum, value, i) => sum + value * v[i], 0);
}
