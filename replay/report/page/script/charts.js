// Charts: those in sight are drawn first, and all others while the page is at rest, so that it prints whole.
// Of a trace, `meta` says: policy, setting: whose it is. valid: or grey. filling: of its marker, as Plotly's suffix of a
// symbol ("-open"). faint. plain: it has colours of its own. points: the setting of each point. all_settings: it is shown
// where all of these are. invalid_points: which are grey. policies, settings: rows and columns of a heat map, and
// colours: "merit" from worst to best, or "none". Of a layout: rows: "policies", its rows are policies, each so many
// pixels (row) under or above an axis (head); columns: "settings".
const drawnCharts = new Map(); // figure element -> { spec, variant, panels: [{ box, plot, panel }], looks }
const inSight = new Set(); // figure elements
let looks = 0; // how often the reader has changed what all charts show; a chart that was drawn before is drawn again
const config = {
  responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  showSendToCloud: false, plotlyServerURL: "", // what a run measured stays with whoever has the file
};
const UPRIGHT = 60; // pixels more for labels that stand, on a phone
const PAPER = 0.66; // of a chart's height, when it is printed
const axisName = /^[xy]axis\d*$/;
const merits = { light: ["#f2a765", "#ffffff", "#7db4e0"], dark: ["#8a4b12", "#20252c", "#1f5f99"] };

function themeName() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function keptOf(axis, shownNames) {
  // A category axis with those of its names alone that are shown.
  const kept = axis.tickvals.map((name, place) => [name, axis.ticktext[place]]).filter(([name]) => shownNames(name));
  return { ...axis, tickvals: kept.map(([name]) => name), ticktext: kept.map(([, text]) => text) };
}

function withRows(layout, height) {
  const { rows, columns, row, head } = layout.meta ?? {};
  const changed = { ...layout };
  let upright = 0;
  if (columns) {
    changed.xaxis = keptOf(layout.xaxis, (name) => isShown(name, null));
    if (changed.xaxis.tickvals.length > 3 && innerWidth < 640) {
      changed.xaxis = { ...changed.xaxis, tickangle: -90 };
      upright = UPRIGHT;
    }
  }
  if (rows) {
    changed.yaxis = keptOf(layout.yaxis, (name) => isShown(null, name));
    const count = changed.yaxis.tickvals.length;
    changed.yaxis.categoryarray = changed.yaxis.tickvals;
    changed.yaxis.range = [count - 0.5, -0.5];
    changed.yaxis.autorange = false;
    changed.height = head + upright + row * Math.max(count, 1);
  }
  return { height, ...changed };
}

function themedLayout(layout, height) {
  const ink = css("--ink");
  const line = { gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true, exponentformat: "none", separatethousands: true };
  const laidOut = withRows(layout, height);
  const themed = {
    ...laidOut, autosize: true, showlegend: false, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    margin: { l: 8, r: 12, t: 8, b: 8, ...layout.margin }, font: { color: ink, size: 12 }, hovermode: layout.hovermode ?? "closest",
    modebar: { bgcolor: "transparent", color: css("--faint"), activecolor: css("--accent") },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink }, align: "left", namelength: -1 },
  };
  for (const name of Object.keys(laidOut).filter((key) => axisName.test(key))) {
    themed[name] = { ...line, ...laidOut[name], title: { standoff: 6, font: { size: 12 }, ...laidOut[name].title } };
  }
  themed.xaxis ??= line;
  themed.yaxis ??= line;
  return themed;
}

function isTraceShown({ policy, setting, all_settings: all }) {
  return isShown(setting, policy) && (all ?? []).every((each) => isShown(each, null));
}

function withPoints(trace, kept) {
  // Those points alone whose places are `kept`.
  const changed = { ...trace };
  for (const name of ["x", "y", "text", "customdata"]) {
    if (Array.isArray(trace[name])) changed[name] = trace[name].filter((_, place) => kept[place]);
  }
  return changed;
}

function heatMap(trace) {
  const rows = trace.meta.policies.map((policy) => isShown(null, policy));
  const columns = trace.meta.settings.map((setting) => isShown(setting, null));
  const changed = { ...trace, y: trace.y.filter((_, place) => rows[place]), x: trace.x.filter((_, place) => columns[place]) };
  for (const name of ["z", "text", "hovertext"]) {
    changed[name] = trace[name].filter((_, place) => rows[place]).map((row) => row.filter((_, place) => columns[place]));
  }
  const [worst, middle, best] = merits[themeName()];
  const plain = css("--line");
  changed.colorscale = trace.meta.colours === "merit" ? [[0, worst], [0.5, middle], [1, best]] : [[0, plain], [1, plain]];
  changed.textfont = { color: css("--ink") };
  return changed;
}

function themedTrace(trace) {
  // The policy's colour and marker, unless the trace has its own; hidden where its policy or mode is.
  const meta = trace.meta ?? {};
  const visible = isTraceShown(meta);
  if (trace.type === "heatmap") return heatMap(trace);
  if (!meta.policy || meta.plain) {
    return trace.line?.color ? { ...trace, visible, line: { ...trace.line, color: shade(trace.line.color) } } : { ...trace, visible };
  }
  const { colour, symbol, dash } = look(meta.policy, meta.valid !== false);
  const filling = meta.filling ?? "";
  const edge = filling ? { width: 1.8 } : { width: 0.8, color: css("--paper") };
  const colours = meta.invalid_points?.map((invalid) => (invalid ? grey : colour)) ?? colour;
  const themed = {
    ...trace, visible,
    opacity: meta.faint ? 0.6 : trace.opacity ?? 1,
    line: { width: widthOf(meta.policy), dash, ...trace.line, color: colour },
    marker: { size: 8, ...trace.marker, symbol: trace.marker?.symbol ?? symbol + filling, color: colours },
    textfont: { color: colour, size: 11 },
  };
  themed.marker.line = { ...edge, ...trace.marker?.line };
  if (trace.marker?.symbol?.endsWith("-thin")) themed.marker.line.color = colour; // all that is seen of it
  for (const name of ["error_x", "error_y"]) if (trace[name]) themed[name] = { ...trace[name], color: colour, thickness: 1.4 };
  return meta.points ? withPoints(themed, meta.points.map((setting) => isShown(setting, null))) : themed;
}

function widthOf(policy) {
  // The first policy's line is the widest, so that another on it does not hide it.
  const names = facts.policies.map((each) => each.name).filter((name) => isShown(null, name));
  return names.length < 2 ? 1.8 : 3.2 - 1.8 * (Math.max(names.indexOf(policy), 0) / (names.length - 1));
}

function isPanelShown(panel) {
  const choosing = panel.data.filter((trace) => trace.meta?.all_settings);
  return isShown(panel.setting, panel.policy) && (!choosing.length || choosing.some((trace) => isTraceShown(trace.meta)));
}

function cut(name, most = 60) {
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

const dashArrays = { dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 3 2 3" };

function keyEntry({ label, symbol, dash, colour }) {
  // What is no policy: a filling, a user's line. Policies have theirs in the bar above.
  const entry = document.createElement("span");
  const inked = colour ? shade(colour) : "currentColor";
  const shape = symbol.startsWith("square")
    ? `<rect x="2" y="2" width="18" height="10" fill="${inked}"/>`
    : symbol
      ? `<circle cx="11" cy="7" r="5" fill="${symbol.includes("open") ? "none" : inked}" stroke="${inked}" stroke-width="1.6"/>` +
        (symbol.endsWith("dot") ? `<circle cx="11" cy="7" r="1.6" fill="${inked}"/>` : "")
      : `<path d="M0 7H22" stroke="${inked}" stroke-width="2.2" stroke-dasharray="${dashArrays[dash] ?? ""}"/>`;
  entry.innerHTML = `<svg width="22" height="14" viewBox="0 0 22 14" aria-hidden="true" style="flex:none">${shape}</svg>`;
  entry.append(cut(label));
  return entry;
}

function drawKey(figure, key) {
  const place = figure.querySelector(".key") ?? document.createElement("p");
  place.className = "key";
  place.replaceChildren(...key.map(keyEntry));
  if (key.length) figure.querySelector("figcaption").append(place);
}

function printedKey(figure) {
  // On paper the bar of policies is not there: what a chart's colours and markers mean stands under it.
  const place = figure.querySelector(".print") ?? document.createElement("p");
  place.className = "print";
  const names = facts.policies.filter((policy) => isShown(null, policy.name)).map((policy) => policy.name);
  place.replaceChildren(...names.flatMap((name) => {
    const mark = document.createElement("i");
    mark.className = "mark";
    mark.dataset.mark = name;
    return [mark, `${cut(name)}\u2003`];
  }));
  figure.append(place);
  drawMarks(place);
}

function linkZoom(chart, plot, linked) {
  plot.on("plotly_relayout", (change) => {
    if (chart.busy) return;
    const moved = Object.fromEntries(Object.entries(change).filter(([key]) => linked.includes(key[0]) && key.slice(1, 5) === "axis"));
    if (!Object.keys(moved).length) return;
    chart.busy = true;
    const others = chart.panels.filter((each) => each.plot !== plot && each.plot.data);
    Promise.all(others.map((each) => Plotly.relayout(each.plot, moved))).finally(() => { chart.busy = false; });
  });
}

function breath() {
  // What the reader does meanwhile is answered, and seen.
  return new Promise((told) => (document.hidden ? setTimeout(told) : requestAnimationFrame(() => setTimeout(told))));
}

function rest() {
  return new Promise((told) => (window.requestIdleCallback ? requestIdleCallback(told, { timeout: 500 }) : setTimeout(told, 50)));
}

async function drawPanel(chart, each, width) {
  // New, or again with what is shown now: how far the reader has zoomed in stays. `width` in pixels: of paper.
  const { box, plot, panel } = each;
  box.classList.toggle("gone", !isPanelShown(panel));
  if (box.classList.contains("gone")) return;
  const traces = panel.data.map(themedTrace);
  if (!plot.data) {
    await Plotly.newPlot(plot, traces, themedLayout(panel.layout, chart.spec.height), config);
    if (chart.spec.linked) linkZoom(chart, plot, chart.spec.linked);
    return;
  }
  const kept = Object.fromEntries(Object.entries(plot.layout).filter(([key]) => axisName.test(key))
    .map(([key, axis]) => [key, { ...panel.layout[key], range: axis.range, autorange: axis.autorange }]));
  const layout = themedLayout({ ...panel.layout, ...kept }, chart.spec.height * (width ? PAPER : 1));
  await Plotly.react(plot, traces, width ? { ...layout, autosize: false, width } : layout, config);
}

function layPanels(figure, chart) {
  // Empty ones of the variant that is chosen, as high as those before, so that nothing below moves.
  const place = figure.querySelector(".panels");
  if (chart.panels.length) place.style.minHeight = `${place.offsetHeight}px`;
  for (const { plot } of chart.panels) Plotly.purge(plot);
  chart.panels = Object.values(chart.spec.variants)[chart.variant].map((panel) => {
    const box = element("div", { className: "panel" });
    const plot = element("div");
    box.append(...(panel.title ? [element("h4", {}, cut(panel.title))] : []), plot);
    return { box, plot, panel };
  });
  place.replaceChildren(...chart.panels.map(({ box }) => box));
}

async function openChart(figure) {
  const chart = { spec: null, variant: 0, panels: [], busy: false, looks };
  drawnCharts.set(figure, chart);
  [chart.spec] = await Promise.all([unpackJson(figure.dataset.blob), library()]);
  figure.querySelector(".variant")?.addEventListener("change", (event) => {
    Object.assign(chart, { variant: event.target.selectedIndex, looks: null });
    layPanels(figure, chart);
    drawCharts();
  });
  layPanels(figure, chart);
  return chart;
}

async function drawChart(figure) {
  const chart = drawnCharts.get(figure) ?? await openChart(figure);
  const { panels } = chart, now = looks;
  chart.looks = now;
  drawKey(figure, chart.spec.key);
  printedKey(figure);
  for (const each of panels) {
    await drawPanel(chart, each);
    await breath();
    if (chart.panels !== panels || looks !== now) return; // another was chosen meanwhile
  }
  figure.querySelector(".panels").style.minHeight = "";
  figure.dataset.drawn = "";
}

function waitingChart() {
  const waiting = [...document.querySelectorAll(".chart")]
    .filter((figure) => drawnCharts.get(figure)?.looks !== looks && !figure.closest(".gone"));
  return waiting.find((figure) => inSight.has(figure)) ?? waiting[0];
}

let drawing = false;
async function drawCharts() {
  // One after another, until all are as they should be.
  delete document.documentElement.dataset.ready;
  if (drawing) return;
  drawing = true;
  await breath();
  for (let next = waitingChart(); next; next = waitingChart()) {
    if (!inSight.has(next)) await rest();
    await drawChart(waitingChart() ?? next).catch((error) => console.error(error)); // the others are drawn all the same
  }
  drawing = false;
  document.documentElement.dataset.ready = "";
}

function redrawCharts() {
  looks += 1;
  drawCharts();
}

function printCharts() {
  // Paper is light, and narrower than the window: at once, for the browser does not wait.
  for (const chart of drawnCharts.values()) {
    for (const each of chart.panels.filter(({ plot }) => plot.data)) drawPanel(chart, each, each.box.clientWidth);
  }
}

function startCharts() {
  const sight = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) isIntersecting ? inSight.add(target) : inSight.delete(target);
  }, { rootMargin: "200px" });
  for (const figure of document.querySelectorAll(".chart")) sight.observe(figure);
  if (document.querySelector(".chart")) library(); // the longest wait begins at once
  onFilter.push(redrawCharts);
  onTheme.push(drawMarks, redrawCharts);
}
