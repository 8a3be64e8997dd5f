/* Things that move by themselves, only while they are in sight. */

/**
 * Calls `onStep(share)` with a share that eases from 0 to 1, until it is there
 * or the function that comes back is called.
 */
export function ease(milliseconds, onStep) {
  let begin = null;
  let stopped = false;
  const step = (now) => {
    if (stopped) return;
    begin ??= now;
    const t = Math.min((now - begin) / milliseconds, 1);
    onStep(t * t * (3 - 2 * t));
    if (t < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  return () => (stopped = true);
}

/** Calls `onStep(seconds since the last)` while `canvas` is in sight. */
export function whileSeen(canvas, onStep) {
  let seen = false;
  let last = null;
  const step = (now) => {
    if (!seen) return;
    if (last !== null) onStep(Math.min((now - last) / 1000, 0.1));
    last = now;
    requestAnimationFrame(step);
  };
  new IntersectionObserver(([entry]) => {
    const starts = entry.isIntersecting && !seen;
    seen = entry.isIntersecting;
    last = null;
    if (starts) requestAnimationFrame(step);
  }).observe(canvas);
}
