/* Draws a surface on a canvas: cells from back to front, lit from above. */

import { colourAt, paletteOf, position } from "./colours.js";

const DISTANCE = 4.5; // of the eye, in radii of the surface
const ZOOM = 0.53; // radius of the surface, in sides of the canvas
const MIDDLE = 0.44; // of the surface, from the top of the canvas
const GAP = 0.14; // from the lowest point to the floor
const LINES = 8; // a line every so many cells
const START = { turn: 0.6, tilt: 0.95 };

export class SurfaceView {
  constructor(canvas, { floor = true } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.floor = floor;
    this.surface = null;
    this.requested = false;
    this.reset();
    new ResizeObserver(() => this.request()).observe(canvas);
    new MutationObserver(() => this.request()).observe(document.body, {
      attributeFilter: ["data-md-color-scheme"],
    });
  }

  /** Points in three dimensions and curvature, row by row. */
  show(points, curvature, size) {
    const lowest = Math.min(...points.map(([, , z]) => z));
    const places = curvature.map(position);
    this.surface = { points, places, size, floor: lowest - GAP };
    this.request();
  }

  rotate(turn, tilt) {
    this.turn += turn;
    this.tilt = Math.min(Math.max(this.tilt + tilt, -0.4), Math.PI + 0.4);
    this.request();
  }

  reset() {
    Object.assign(this, START);
    this.request();
  }

  /** Draws before the next repaint, once. */
  request() {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => {
      this.requested = false;
      if (this.surface) this.draw();
    });
  }

  draw() {
    const { canvas, context } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    context.clearRect(0, 0, width, height);
    const palette = paletteOf(isDark());
    const camera = this.camera(width, height);
    const { points, places, size } = this.surface;
    const seen = points.map(camera);
    if (this.floor && this.tilt < 1.5)
      this.drawShadow(
        points.map(([x, y]) => camera([x, y, this.surface.floor])),
        palette,
      );
    context.lineJoin = "round";
    context.lineWidth = 0.7 * ratio;
    const cells = cellsOf(size, seen);
    for (const cell of cells) this.drawCell(cell, seen, places, palette);
    this.drawMark(seen[(size * size - 1) / 2], palette, ratio);
  }

  /* Point ↦ [x, y] on the canvas, depth, and the point as the eye sees it. */
  camera(width, height) {
    const [ct, st] = [Math.cos(this.turn), Math.sin(this.turn)];
    const [cp, sp] = [Math.cos(this.tilt), Math.sin(this.tilt)];
    const zoom = ZOOM * Math.min(width, height);
    return ([x, y, z]) => {
      const side = ct * x - st * y;
      const away = st * x + ct * y;
      const up = cp * away + sp * z;
      const near = cp * z - sp * away;
      const scale = (zoom * DISTANCE) / (DISTANCE - near);
      return [
        width / 2 + scale * side,
        MIDDLE * height - scale * up,
        near,
        [side, up, near],
      ];
    };
  }

  drawShadow(seen, palette) {
    const { context } = this;
    context.beginPath();
    for (const cell of cellsOf(this.surface.size, seen))
      trace(
        context,
        cell.corners.map((c) => seen[c]),
        true,
      );
    context.fillStyle = palette.shadow;
    context.fill();
  }

  drawCell({ corners, row, column }, seen, places, palette) {
    const { context } = this;
    const [p, q, r, s] = corners.map((corner) => seen[corner]);
    const light = lightOf(p[3], q[3], r[3], s[3]);
    const place = corners.reduce((sum, c) => sum + places[c], 0) / 4;
    const colour = colourAt(place, palette).map((value) => shade(value, light));
    const fill = `rgb(${colour[0] | 0},${colour[1] | 0},${colour[2] | 0})`;
    context.beginPath();
    trace(context, [p, q, r, s]);
    context.fillStyle = context.strokeStyle = fill;
    context.fill();
    context.stroke(); // closes the seams between neighbours
    context.beginPath();
    // Both neighbours draw a line, since the later one covers it.
    const last = this.surface.size - 1;
    const lined = (index) => index % LINES === 0 || index === last;
    if (lined(row)) line(context, p, q);
    if (lined(row + 1)) line(context, s, r);
    if (lined(column)) line(context, p, s);
    if (lined(column + 1)) line(context, q, r);
    context.strokeStyle = palette.line;
    context.stroke();
  }

  /* A ring around the middle of the patch. */
  drawMark([x, y], palette, ratio) {
    const { context } = this;
    for (const [colour, width] of [
      [palette.halo, 4],
      [palette.mark, 2],
    ]) {
      context.beginPath();
      context.arc(x, y, 5 * ratio, 0, 2 * Math.PI);
      context.strokeStyle = colour;
      context.lineWidth = width * ratio;
      context.stroke();
    }
  }
}

export function isDark() {
  return document.body.getAttribute("data-md-color-scheme") === "slate";
}

/* Cells of the mesh, the farthest first. */
function cellsOf(size, seen) {
  const cells = [];
  for (let row = 0; row < size - 1; row++)
    for (let column = 0; column < size - 1; column++) {
      const first = row * size + column;
      const corners = [first, first + 1, first + size + 1, first + size];
      const depth = corners.reduce((sum, corner) => sum + seen[corner][2], 0);
      cells.push({ corners, row, column, depth });
    }
  return cells.sort((a, b) => a.depth - b.depth);
}

/* Cosine of the angle between the normal and the light, on either side. */
function lightOf(p, q, r, s) {
  const [ax, ay, az] = [r[0] - p[0], r[1] - p[1], r[2] - p[2]];
  const [bx, by, bz] = [s[0] - q[0], s[1] - q[1], s[2] - q[2]];
  const normal = [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx];
  const size = Math.hypot(...normal);
  if (size < 1e-12) return 0.7;
  const facing = normal[2] < 0 ? -1 : 1;
  const dot = -0.38 * normal[0] + 0.56 * normal[1] + 0.736 * normal[2];
  return Math.max((facing * dot) / size, 0);
}

function shade(value, light) {
  const shine = 34 * light ** 24;
  return Math.min(value * (0.66 + 0.42 * light) + shine, 255);
}

function trace(context, corners) {
  const [first, ...rest] = corners;
  context.moveTo(first[0], first[1]);
  for (const corner of rest) context.lineTo(corner[0], corner[1]);
  context.closePath();
}

function line(context, from, to) {
  context.moveTo(from[0], from[1]);
  context.lineTo(to[0], to[1]);
}
