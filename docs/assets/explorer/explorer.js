/*
 * Fills every element of class `curvature-explorer`: with the whole explorer,
 * or, with the attribute `data-compact`, with a small surface and one slider.
 */

import { fillCompact } from "./compact.js";
import { element } from "./dom.js";
import { fillWhole } from "./whole.js";

async function start() {
  const places = [...document.querySelectorAll(".curvature-explorer")];
  if (places.length === 0) return;
  await style();
  for (const place of places) {
    place.replaceChildren();
    if (place.hasAttribute("data-compact")) fillCompact(place);
    else fillWhole(place);
    place.dataset.ready = "";
  }
}

/* The style sheets lie beside this file, so that a page needs one line. */
function style() {
  const sheets = ["explorer.css", "controls.css"].map((name) => {
    const href = new URL(name, import.meta.url).href;
    const link = element("link", { rel: "stylesheet", href });
    document.head.append(link);
    return new Promise((resolve) => {
      link.addEventListener("load", resolve);
      link.addEventListener("error", resolve);
    });
  });
  return Promise.all(sheets);
}

start();
