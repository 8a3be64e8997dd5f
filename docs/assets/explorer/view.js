/* A surface on a canvas, and the eye that looks at it. */

import { paletteOf, position } from "./colours.js";
import { paintMark, paintShadow, paintSurface } from "./paint.js";

const DISTANCE = 4.5; // of the eye, in radii of the surface
const ZOOM = 0.53; // radius of the surface, in sides of the canvas
const MIDDLE = 0.44; // of the surface, from the top of the canvas
const GAP = 0.14; // from the lowest point to the floor
const SIDEWAYS = 1.5; // from here on the floor is not seen from above
const START = { turn: 0.6, tilt: 0.95 };

export class SurfaceView {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
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
    const { canvas, context, surface } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    context.clearRect(0, 0, width, height);
    const palette = paletteOf(isDark());
    const camera = this.camera(width, height);
    const { points, places, size, floor } = surface;
    const seen = points.map(camera);
    if (this.tilt < SIDEWAYS) {
      const below = points.map(([x, y]) => camera([x, y, floor]));
      paintShadow(context, below, size, palette);
    }
    paintSurface(context, { seen, places, size }, palette, ratio);
    paintMark(context, seen[(size * size - 1) / 2], palette, ratio);
  }

  /* Point ↦ x and y on the canvas, and the point as the eye sees it. */
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
      return {
        x: width / 2 + scale * side,
        y: MIDDLE * height - scale * up,
        side,
        up,
        near,
      };
    };
  }
}

export function isDark() {
  return document.body.getAttribute("data-md-color-scheme") === "slate";
}
