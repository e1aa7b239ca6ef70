// Charts: drawn when they come into sight, and all of them once the page is at rest, so that it prints whole.
const drawnCharts = new Map(); // figure element -> { spec, variant, panels: [{ box, plot, panel }] }
const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };

function themedLayout(layout, height) {
  const ink = css("--ink");
  const line = { gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
  const themed = {
    ...layout, height, autosize: true, showlegend: false, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    margin: { l: 8, r: 12, t: 8, b: 8, ...layout.margin }, font: { color: ink, size: 12 }, hovermode: layout.hovermode ?? "closest",
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink } },
  };
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) themed[name] = { ...line, ...layout[name] };
  themed.xaxis ??= line;
  themed.yaxis ??= line;
  return themed;
}

function themedTrace(trace) {
  // The policy's colour and marker, unless the trace has its own; hidden where its policy or mode is.
  const { policy, setting, valid, plain } = trace.meta ?? {};
  const visible = isShown(setting, policy);
  if (!policy || plain) return { ...trace, visible };
  const { colour, symbol, dash } = look(policy, valid !== false);
  return {
    ...trace, visible,
    line: { width: 1.8, dash, ...trace.line, color: colour },
    marker: { symbol, size: 8, ...trace.marker, color: trace.marker?.color ?? colour },
  };
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

async function drawVariant(figure, chart, variant) {
  const place = figure.querySelector(".panels");
  for (const { plot } of chart.panels) Plotly.purge(plot);
  place.replaceChildren();
  chart.variant = variant;
  chart.panels = chart.spec.variants[variant].map((panel) => {
    const box = document.createElement("div");
    box.className = "panel";
    const title = document.createElement("h4");
    title.textContent = panel.title;
    const plot = document.createElement("div");
    box.append(title, plot);
    place.append(box);
    return { box, plot, panel };
  });
  for (const { box, panel } of chart.panels) box.classList.toggle("gone", !isShown(panel.setting, null));
  for (const { plot, panel } of chart.panels) {
    await Plotly.newPlot(plot, panel.data.map(themedTrace), themedLayout(panel.layout, chart.spec.height), config);
    if (chart.spec.linked) linkZoom(chart, plot, chart.spec.linked);
  }
  place.style.minHeight = "";
}

async function drawChart(figure) {
  if (drawnCharts.has(figure)) return;
  const chart = { spec: null, variant: "", panels: [], busy: false };
  drawnCharts.set(figure, chart);
  const [spec] = await Promise.all([unpackJson(figure.dataset.blob), library()]);
  chart.spec = spec;
  await drawVariant(figure, chart, Object.keys(spec.variants)[0]);
  figure.querySelector(".variant")?.addEventListener("change", (event) => drawVariant(figure, chart, event.target.value));
  figure.dataset.drawn = "";
}

function redrawCharts() {
  for (const [figure, chart] of drawnCharts) {
    if (!chart.spec || figure.closest(".gone")) continue;
    for (const { box, plot, panel } of chart.panels) {
      box.classList.toggle("gone", !isShown(panel.setting, null));
      if (plot.data && !box.classList.contains("gone")) {
        const kept = Object.fromEntries(Object.entries(plot.layout).filter(([key]) => /^[xy]axis\d*$/.test(key))
          .map(([key, axis]) => [key, { ...panel.layout[key], range: axis.range, autorange: axis.autorange }]));
        Plotly.react(plot, panel.data.map(themedTrace), themedLayout({ ...panel.layout, ...kept }, chart.spec.height), config);
      }
    }
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
