"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const drawn = new Set();
  // The plotting library lies in the page packed; everything else works before it is there.
  const library = (async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (sign) => sign.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  })();
  library.catch(() => document.querySelectorAll(".plot").forEach((box) => {
    box.textContent = "This browser is too old to draw plots; every number is in the tables.";
  }));
  let printing = false;

  // Colours are @name in the figures and --name in the style sheet, so that plots follow the theme.
  const resolve = (value, style) => {
    if (typeof value === "string" && value.startsWith("@")) return style.getPropertyValue("--" + value.slice(1)).trim();
    if (Array.isArray(value)) return value.map((item) => resolve(item, style));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, item]) =>
        [key, key === "customdata" || key === "meta" || key === "text" ? item : resolve(item, style)]));
    return value;
  };
  const axis = (given) => ({
    gridcolor: "@edge", linecolor: "@faint", zerolinecolor: "@faint", tickfont: { size: 11 }, automargin: true,
    exponentformat: "SI", ...given, title: { font: { size: 12 }, standoff: 8, ...(given || {}).title },
  });
  // Names below bars: every n-th where not all have room.
  const thinned = (given, width) => {
    if (!given || given.type === "log" || !given.ticktext) return given;
    const every = Math.ceil(given.ticktext.length * 18 / Math.max(width - 80, 1));
    const kept = (item, index) => index % every === 0;
    return { ...given, tickvals: given.tickvals.filter(kept), ticktext: given.ticktext.filter(kept) };
  };
  const widthOf = (box) => printing ? Math.min(box.clientWidth || 680, 680) : box.clientWidth;
  // Legends stand beside wide plots and above narrow ones, over none.
  const legend = (given, box) => widthOf(box) < 760 ? { ...given, font: { size: 11 } } : {
    ...given, orientation: "v", x: 1.01, xanchor: "left", y: 1, yanchor: "top", font: { size: 11 } };
  const layout = (given, box) => ({
    ...given, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: false,
    width: widthOf(box), height: given.height || parseFloat(getComputedStyle(box).minHeight),
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@muted" },
    // The buttons stand above the legend and the scale of colours, over neither.
    margin: { l: 58, r: 14, t: 28, b: 44 }, yaxis: axis(given.yaxis),
    xaxis: axis({ ticks: "outside", ticklen: 7, tickcolor: "rgba(0,0,0,0)", ...thinned(given.xaxis, widthOf(box)) }),
    legend: legend(given.legend, box),
    modebar: { bgcolor: "rgba(0,0,0,0)", color: "@faint", activecolor: "@accent" },
    hoverlabel: { bgcolor: "@surface", bordercolor: "@faint", font: { color: "@text", size: 12 }, align: "left" },
  });
  const draw = (box) => {
    const figure = figures[box.dataset.figure];
    if (!figure) return Promise.resolve();
    drawn.add(box);
    if (!window.Plotly) return library.then(() => draw(box));
    const style = getComputedStyle(document.documentElement);
    return Plotly.react(box, resolve(figure.data, style), resolve(layout(figure.layout, box), style), {
      displaylogo: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    });
  };
  const redraw = () => Promise.all([...drawn].filter((box) => box.clientWidth).map(draw));

  document.querySelectorAll(".plot").forEach((box) => { if (!box.closest("details")) draw(box); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 120); });
  const forPrint = (now) => {
    printing = now;
    document.documentElement.classList.toggle("light", now);
    redraw();
  };
  addEventListener("beforeprint", () => forPrint(true));
  addEventListener("afterprint", () => forPrint(false));

  // Layers: plots inside are drawn when first opened; a link to a layer opens it.
  const layers = [...document.querySelectorAll("details.layer")];
  layers.forEach((layer) => layer.addEventListener("toggle", () => {
    if (layer.open) layer.querySelectorAll(".plot").forEach((box) => { if (!drawn.has(box)) draw(box); });
  }));
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details")) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", follow);
  follow();
  document.querySelectorAll("a[href^='#layer-']").forEach((link) => link.addEventListener("click", () => {
    document.getElementById(link.hash.slice(1)).open = true;
  }));
  document.querySelectorAll("[data-open]").forEach((button) => button.addEventListener("click", () => {
    layers.forEach((layer) => { layer.open = button.dataset.open === "all"; });
  }));

  // The layer table: sorted by any column, filtered by words.
  const table = document.getElementById("layers-table");
  if (!table) return;
  const body = table.tBodies[0];
  const order = [...body.rows];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim().toLowerCase() : cell.dataset.value;
  };
  table.querySelectorAll("th button").forEach((button) => button.addEventListener("click", () => {
    const head = button.closest("th");
    const numeric = head.classList.contains("n");
    const was = head.getAttribute("aria-sort");
    const direction = was === (numeric ? "descending" : "ascending") ? (numeric ? "ascending" : "descending")
      : was ? null : numeric ? "descending" : "ascending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    let rows = [...order];
    if (direction) {
      head.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const column = head.cellIndex;
      rows = rows.map((row) => [value(row, column), row]).sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true }));
      }).map(([, row]) => row);
    }
    body.append(...rows);
  }));
  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    order.forEach((row) => {
      const text = row.dataset.text.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    });
    document.getElementById("shown").textContent = `${shown} of ${order.length} layers`;
  });
})();
