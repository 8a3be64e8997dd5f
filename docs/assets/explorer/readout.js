/* What is said of the surface: a sentence, numbers, and both for a listener. */

import { element } from "./dom.js";
import { number, share, spoken, verdict } from "./text.js";

const NUMBERS = [
  ["centre", "K at the ring", "where x = 0"],
  ["absolute", "∫|K| dA", "how curved"],
  ["signed", "∫K dA", "signs cancel"],
  ["positive", "positive", "of ∫|K| dA"],
  ["largest", "largest |K|", "of all points"],
  ["degenerate", "degenerate", "points"],
];
const PAUSE = 700; // milliseconds without a change before it is said aloud

export function createReadout() {
  const said = element("p", { className: "cx-verdict" });
  const note = element("p", { className: "cx-note" });
  const live = element("p", { className: "cx-hidden", "aria-live": "polite" });
  const outputs = {};
  const numbers = element("dl", { className: "cx-numbers" });
  for (const [key, name, meaning] of NUMBERS) {
    outputs[key] = element("dd", { "data-number": key });
    numbers.append(
      element(
        "div",
        {},
        element("dt", {}, name),
        outputs[key],
        element("dd", { className: "cx-meaning" }, meaning),
      ),
    );
  }
  let waiting = null;

  function show(settings, surface, totals, shown) {
    said.textContent = verdict(settings, totals);
    const texts = {
      centre: number(surface.centre),
      absolute: number(totals.absolute),
      signed: number(totals.signed),
      positive: share(totals.positive),
      largest: number(surface.largest),
      degenerate: String(surface.degenerate),
    };
    for (const [key, text] of Object.entries(texts))
      outputs[key].textContent = text;
    note.textContent = [
      `The picture has ${surface.curvature.length} points`,
      `and ${share(shown)} of the variance.`,
      `Integrals leave out ${totals.dropped} of ${totals.nodes} nodes.`,
      `Weights: seed ${settings.seed}.`,
    ].join(" ");
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      live.textContent = `${said.textContent} ${spoken(totals, surface)}`;
    }, PAUSE);
  }

  return { said, numbers, note, live, show };
}
