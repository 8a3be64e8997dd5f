/* Paints a surface that is seen: its cells from back to front, lit from above. */

import { colourAt } from "./colours.js";

const LINES = 7; // a line every so many cells
const OVERLAP = 0.6; // pixels, so that no seams show between cells
const AMBIENT = 0.66;
const DIFFUSE = 0.42;
const SHINE = 34;
const LIGHT = [-0.38, 0.56, 0.736]; // where it comes from: left, above, here

/** `seen` has x, y, side, up and near of every point, row by row. */
export function paintSurface(context, { seen, places, size }, palette, ratio) {
  context.lineWidth = 0.7 * ratio;
  context.strokeStyle = palette.line;
  for (const cell of cellsFromBack(seen, size)) {
    const [i, j, k, l] = cell.corners;
    const corners = [seen[i], seen[j], seen[k], seen[l]];
    const place = (places[i] + places[j] + places[k] + places[l]) / 4;
    context.fillStyle = lit(colourAt(place, palette), lightOn(corners));
    context.beginPath();
    outline(context, corners, OVERLAP * ratio);
    context.fill();
    paintLines(context, cell, corners, size - 1);
  }
}

/** On a floor below, as one shape. */
export function paintShadow(context, seen, size, palette) {
  const step = 2;
  context.fillStyle = palette.shadow;
  context.beginPath();
  for (let row = 0; row + step < size; row += step)
    for (let column = 0; column + step < size; column += step) {
      const corners = cornersOf(row, column, size, step);
      const [a, b, c, d] = corners.map((corner) => seen[corner]);
      // All the same way round, since opposite ones would cancel.
      const turns = (c.x - a.x) * (d.y - b.y) - (c.y - a.y) * (d.x - b.x);
      outline(context, turns < 0 ? [d, c, b, a] : [a, b, c, d], 0);
    }
  context.fill();
}

/** A ring. */
export function paintMark(context, { x, y }, palette, ratio) {
  const rings = [
    [palette.halo, 4],
    [palette.mark, 2],
  ];
  for (const [colour, width] of rings) {
    context.beginPath();
    context.arc(x, y, 5 * ratio, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.stroke();
  }
}

/* Both neighbours paint a line, since the later one covers it. */
function paintLines(context, { row, column }, [a, b, c, d], last) {
  const lined = (index) => index % LINES === 0 || index === last;
  const lines = [];
  if (lined(row)) lines.push(a, b);
  if (lined(row + 1)) lines.push(d, c);
  if (lined(column)) lines.push(a, d);
  if (lined(column + 1)) lines.push(b, c);
  if (lines.length === 0) return;
  context.beginPath();
  for (let i = 0; i < lines.length; i += 2) {
    context.moveTo(lines[i].x, lines[i].y);
    context.lineTo(lines[i + 1].x, lines[i + 1].y);
  }
  context.stroke();
}

function cellsFromBack(seen, size) {
  const cells = [];
  for (let row = 0; row < size - 1; row++)
    for (let column = 0; column < size - 1; column++) {
      const corners = cornersOf(row, column, size, 1);
      const [i, j, k, l] = corners;
      const near = seen[i].near + seen[j].near + seen[k].near + seen[l].near;
      cells.push({ corners, row, column, near });
    }
  return cells.sort((a, b) => a.near - b.near);
}

function cornersOf(row, column, size, step) {
  const first = row * size + column;
  return [first, first + step, first + step * size + step, first + step * size];
}

/* A closed path, with its corners moved away from the middle. */
function outline(context, corners, margin) {
  const [a, b, c, d] = corners;
  const x = (a.x + b.x + c.x + d.x) / 4;
  const y = (a.y + b.y + c.y + d.y) / 4;
  corners.forEach((corner, index) => {
    const [dx, dy] = [corner.x - x, corner.y - y];
    const out = margin / (Math.abs(dx) + Math.abs(dy) + 0.01);
    const move = index === 0 ? "moveTo" : "lineTo";
    context[move](corner.x + out * dx, corner.y + out * dy);
  });
  context.closePath();
}

/* Cosine of the angle between the normal and the light, on either side. */
function lightOn([a, b, c, d]) {
  const [px, py, pz] = [c.side - a.side, c.up - a.up, c.near - a.near];
  const [qx, qy, qz] = [d.side - b.side, d.up - b.up, d.near - b.near];
  const [x, y, z] = [py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx];
  const size = Math.sqrt(x * x + y * y + z * z);
  if (size < 1e-12) return 0.7; // a line or a point
  const facing = z < 0 ? -1 : 1;
  const cosine = (LIGHT[0] * x + LIGHT[1] * y + LIGHT[2] * z) / size;
  return Math.max(facing * cosine, 0);
}

function lit(colour, light) {
  const shine = SHINE * light ** 24;
  const [red, green, blue] = colour.map((value) =>
    Math.round(Math.min(value * (AMBIENT + DIFFUSE * light) + shine, 255)),
  );
  return `rgb(${red},${green},${blue})`;
}
