/*
 * Colours of curvature: blue where it is negative, grey at zero, orange and red
 * where it is positive. The scale is fixed, linear near zero and logarithmic
 * beyond, because curvature spans orders of magnitude.
 */

const LINEAR = 0.1;
const LIMIT = 100;
export const TICKS = [-100, -10, -1, 0, 1, 10, 100];

const PALETTES = {
  light: {
    stops: [
      "#163f8f",
      "#3f83cf",
      "#a9cdea",
      "#dfdcd6",
      "#f6bd84",
      "#e4713a",
      "#9c1c24",
    ],
    degenerate: "#9a86c8",
    shadow: "rgba(20, 24, 40, 0.07)",
    line: "rgba(15, 20, 40, 0.22)",
    mark: "#16181f",
    halo: "#ffffff",
  },
  dark: {
    stops: [
      "#b5dcff",
      "#5aa9f5",
      "#4377ba",
      "#6a6d78",
      "#c07a45",
      "#f79d52",
      "#ffdcae",
    ],
    degenerate: "#a48be0",
    shadow: "rgba(0, 0, 0, 0.22)",
    line: "rgba(8, 10, 18, 0.28)",
    mark: "#ffffff",
    halo: "#15171e",
  },
};

export function paletteOf(dark) {
  const palette = dark ? PALETTES.dark : PALETTES.light;
  return {
    ...palette,
    stops: palette.stops.map(channels),
    degenerate: channels(palette.degenerate),
  };
}

/** Where curvature k stands on the scale, −1 to 1. */
export function position(k) {
  const size = Math.log1p(Math.abs(k) / LINEAR) / Math.log1p(LIMIT / LINEAR);
  return Math.sign(k) * Math.min(size, 1);
}

/** Red, green and blue at a position of the scale; NaN is degenerate. */
export function colourAt(place, palette) {
  if (Number.isNaN(place)) return palette.degenerate;
  const { stops } = palette;
  const t = ((place + 1) / 2) * (stops.length - 1);
  const i = Math.min(Math.floor(t), stops.length - 2);
  return stops[i].map((low, c) => low + (t - i) * (stops[i + 1][c] - low));
}

export function css(colour) {
  return `rgb(${colour.map(Math.round).join(" ")})`;
}

/** The scale as a CSS gradient from left to right. */
export function gradient(palette) {
  return `linear-gradient(90deg, ${palette.stops.map(css).join(", ")})`;
}

/** Where a tick stands, in percent from the left. */
export function percent(k) {
  return 50 * (position(k) + 1);
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
