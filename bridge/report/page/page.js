// Draws the charts one after the other, in the page's colours, and again when the system turns light or dark.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)").matches;
  const config = {
    displaylogo: false,
    responsive: true,
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };

  // Put the value of a CSS variable in place of every "var(--name)".
  const painted = (value, style) => {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => painted(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, style)]));
  };

  const draw = async (plot) => {
    try {
      const source = JSON.parse(document.getElementById(`${plot.id}-data`).textContent);
      const { data, layout } = painted(source, getComputedStyle(document.documentElement));
      // A finger that scrolls the page must not zoom a chart.
      if (touch) layout.dragmode = (layout.meta && layout.meta.touch) || false;
      await Plotly.react(plot, data, layout, config);
      plot.dataset.drawn = "yes";
    } catch (error) {
      plot.textContent = `This chart could not be drawn: ${error.message}`;
      plot.classList.add("broken");
    }
  };

  let turn = 0;
  const drawAll = async () => {
    const mine = ++turn;
    document.documentElement.dataset.charts = "drawing";
    for (const plot of document.querySelectorAll(".plot")) {
      await new Promise((next) => setTimeout(next)); // let the page answer in between
      if (mine !== turn) return; // the colours changed meanwhile
      await draw(plot);
    }
    document.documentElement.dataset.charts = "drawn";
  };

  dark.addEventListener("change", drawAll);
  drawAll();
})();
