// Typesets formulas with the MathJax beside this file, which is loaded only on
// pages that have some: formulas of Markdown pages are in elements of class
// "arithmatex", those of notebooks between dollars in their Markdown cells.
(() => {
  if (window.MathJax) return; // Notebook pages name this file twice.
  window.MathJax = {};
  const mathjax = new URL("mathjax/tex-svg.js", document.currentScript.src);

  function typeset() {
    const cells = [...document.querySelectorAll(".jp-MarkdownOutput")];
    const elements = [
      ...document.querySelectorAll(".arithmatex"),
      ...cells.filter((cell) => /\$|\\\(|\\\[/.test(cell.textContent)),
    ];
    if (!elements.length) return;
    const dollars = cells.length ? [["$", "$"]] : [];
    window.MathJax = {
      tex: { inlineMath: [["\\(", "\\)"], ...dollars], processEscapes: true },
      // The menu would fetch parts that are not here.
      options: { enableMenu: false },
      startup: { elements },
    };
    const script = document.createElement("script");
    script.src = mathjax.href;
    document.head.append(script);
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", typeset);
  } else {
    typeset();
  }
})();
