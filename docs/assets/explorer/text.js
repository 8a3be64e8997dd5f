/* Numbers and sentences about a surface. */

import { CONSTANT_CURVATURE } from "./map.js";
import { ROUNDING } from "./measure.js";

/** Three digits; below the precision of the computation it is 0. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < ROUNDING) return "0";
  if (size >= 9999.5 || size < 0.001) return scientific(value);
  const text = size >= 99.95 ? value.toFixed(0) : value.toPrecision(3);
  return text.replace("-", "−");
}

function scientific(value) {
  const [digits, exponent] = value.toExponential(1).split("e");
  const raised = [...String(Number(exponent))]
    .map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]))
    .join("");
  return `${digits.replace("-", "−")}·10${raised}`;
}

export function share(value) {
  return Number.isFinite(value) ? `${Math.round(100 * value)} %` : "–";
}

/** What may be said of the surface in one or two sentences. */
export function verdict(settings, totals) {
  if (settings.function === CONSTANT_CURVATURE)
    return ofConstantCurvature(settings);
  const { tokens, features, strength } = settings;
  const gated = settings.function !== "none" && strength > 0;
  if (totals.dropped === totals.nodes)
    return `Degenerate: ${tokens === 2 ? "two tokens span a line" : "the image has lost a dimension"}, and a line has no curvature.`;
  const flat = totals.absolute < ROUNDING;
  const moving = gated && settings.granularity !== "constant";
  if (!moving) return ofStillGate(flat, gated, tokens, features);
  if (flat && tokens === 2)
    return "Flat: a scalar gate on a line of two tokens sweeps out a piece of a plane.";
  if (flat) return "Flat, wherever it can be measured.";
  const before =
    tokens === 2
      ? "Without the gate it would be a line"
      : tokens === 3
        ? "Without the gate it would be flat"
        : "It is curved without the gate too";
  const how =
    settings.granularity === "headwise"
      ? "one factor for the whole head, which changes with the query"
      : "each feature has its own factor, which changes with the query";
  const closed =
    settings.function === "ReLU" && totals.dropped > 0
      ? " Where ReLU gates are shut features are zero, and the image loses its dimensions."
      : "";
  return `Curved: ${how}. ${before}.${closed}`;
}

function ofStillGate(flat, gated, tokens, features) {
  const span = `${tokens} tokens span ${Math.min(tokens - 1, features)} dimensions`;
  if (flat)
    return gated
      ? "Flat, exactly: three tokens span a plane, and a constant gate only stretches the axes."
      : "Flat, exactly: three tokens span a plane, and a weighted mean of their values stays in it.";
  return gated
    ? `Curved, but not by the gate, which only stretches the axes: ${span}.`
    : `Curved without any gate: ${span}, so a weighted mean of their values has room to bend.`;
}

function ofConstantCurvature({ kappa, strength }) {
  const shape =
    kappa > 0
      ? "a piece of a sphere"
      : kappa < 0
        ? "a hyperbolic plane"
        : "a plane";
  if (strength < 1)
    return `On the way from a plane to ${shape}: at strength 1 the curvature is ${number(kappa)} everywhere.`;
  if (kappa >= 0)
    return `${kappa > 0 ? "A piece of a sphere" : "A plane"}: curvature ${number(kappa)} at every point. The gate is (1 + κ|u|²)^(−½).`;
  return `A hyperbolic plane: curvature ${number(kappa)} at every point, measured with signs (+, +, −). The same bowl in ordinary space, as drawn, is positively curved.`;
}

/** The numbers in words, for screen readers. */
export function spoken(totals, mesh) {
  const said = (value) =>
    number(value).replace("−", "minus ").replace("–", "unknown");
  return [
    `Curvature in the middle ${said(mesh.centre)}.`,
    `Total of its size ${said(totals.absolute)}, signed total ${said(totals.signed)}.`,
    Number.isFinite(totals.positive)
      ? `${share(totals.positive)} positive.`
      : "",
    `Largest size ${said(mesh.largest)}.`,
    mesh.degenerate ? `${mesh.degenerate} points degenerate.` : "",
  ].join(" ");
}
