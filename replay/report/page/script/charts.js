// Charts: drawn when they come into sight, and all of them once the page is at rest, so that it prints whole.
// Of a trace, `meta` says: policy, setting: whose it is. valid: or grey. filling: of its marker, as Plotly's suffix of a
// symbol ("-open"). faint. plain: it has colours of its own. points: the setting of each point. all_settings: it is shown
// where all of these are. invalid_points: which are grey. policies, settings: rows and columns of a heat map, and
// colours: "merit" from worst to best, or "none". Of a layout: rows: "policies", its rows are policies, each so many
// pixels (row) under or above an axis (head); columns: "settings".
const drawnCharts = new Map(); // figure element -> { spec, variant, panels: [{ box, plot, panel }] }
const config = {
  responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  showSendToCloud: false, plotlyServerURL: "", // what a run measured stays with whoever has the file
};
const UPRIGHT = 60; // pixels more for labels that stand, on a phone
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
  drawMarks();
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

async function drawPanel(chart, each) {
  // New, or again with what is shown now: how far the reader has zoomed in stays.
  const { box, plot, panel } = each;
  box.classList.toggle("gone", !isPanelShown(panel));
  if (box.classList.contains("gone")) return;
  if (!plot.data) {
    await Plotly.newPlot(plot, panel.data.map(themedTrace), themedLayout(panel.layout, chart.spec.height), config);
    if (chart.spec.linked) linkZoom(chart, plot, chart.spec.linked);
    return;
  }
  const kept = Object.fromEntries(Object.entries(plot.layout).filter(([key]) => axisName.test(key))
    .map(([key, axis]) => [key, { ...panel.layout[key], range: axis.range, autorange: axis.autorange }]));
  await Plotly.react(plot, panel.data.map(themedTrace), themedLayout({ ...panel.layout, ...kept }, chart.spec.height), config);
}

async function drawVariant(figure, chart, variant) {
  const place = figure.querySelector(".panels");
  for (const { plot } of chart.panels) Plotly.purge(plot);
  place.replaceChildren();
  const panels = Object.values(chart.spec.variants)[variant].map((panel) => {
    const box = document.createElement("div");
    box.className = "panel";
    const title = document.createElement("h4");
    title.textContent = cut(panel.title);
    const plot = document.createElement("div");
    box.append(...(panel.title ? [title, plot] : [plot]));
    place.append(box);
    return { box, plot, panel };
  });
  chart.panels = panels;
  for (const each of panels) {
    await drawPanel(chart, each);
    if (chart.panels !== panels) return; // another was chosen meanwhile
  }
  place.style.minHeight = "";
}

async function drawChart(figure) {
  if (drawnCharts.has(figure)) return;
  const chart = { spec: null, panels: [], busy: false };
  drawnCharts.set(figure, chart);
  const [spec] = await Promise.all([unpackJson(figure.dataset.blob), library()]);
  chart.spec = spec;
  drawKey(figure, spec.key);
  printedKey(figure);
  await drawVariant(figure, chart, 0);
  figure.querySelector(".variant")?.addEventListener("change", (event) => drawVariant(figure, chart, event.target.selectedIndex));
  figure.dataset.drawn = "";
}

function redrawCharts() {
  for (const [figure, chart] of drawnCharts) {
    if (!chart.spec || figure.closest(".gone")) continue;
    drawKey(figure, chart.spec.key);
    printedKey(figure);
    for (const each of chart.panels) drawPanel(chart, each);
  }
}

function figures() {
  return [...document.querySelectorAll(".chart")].filter((figure) => !figure.closest(".gone") && !drawnCharts.has(figure));
}

let resting = false;
function drawAtRest() {
  if (resting) return;
  const next = figures()[0];
  if (!next) {
    document.documentElement.dataset.ready = "";
    return;
  }
  resting = true;
  delete document.documentElement.dataset.ready;
  (window.requestIdleCallback ?? ((told) => setTimeout(told, 50)))(async () => {
    await drawChart(next);
    resting = false;
    drawAtRest();
  });
}

function startCharts() {
  const sight = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) drawChart(target);
  }, { rootMargin: "200px" });
  for (const figure of document.querySelectorAll(".chart")) sight.observe(figure);
  onFilter.push(redrawCharts, drawAtRest);
  onTheme.push(drawMarks, redrawCharts);
}
