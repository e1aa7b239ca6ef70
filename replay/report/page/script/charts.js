// Charts: those in sight are drawn first, and all others while the page is at rest, so that it prints whole.
const drawnCharts = new Map(); // figure element -> { spec, variant, panels: [{ box, plot, panel }], looks }
const inSight = new Set(); // figure elements
let looks = 0; // how often the reader has changed what all charts show; a chart that was drawn before is drawn again
const config = {
  responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  showSendToCloud: false, plotlyServerURL: "", // what a run measured stays with whoever has the file
};
const PAPER = 0.66; // of a chart's height, when it is printed

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
