// The explorer: one or two cells beside each other over the same seconds, which the reader brushes in the overview.
const explorers = []; // one for each trace, once it is opened

async function openExplorer(figure) {
  const known = explorers.find((each) => each.figure === figure);
  if (known) return known.opened;
  const explorer = { figure, trace: null, chosen: [null, null], cells: [null, null], panels: [], pinned: null, read: new Map(),
    view: { from: 0, to: 1, first: 0, last: 1 }, unit: unitOf(1), sort: { column: "arrived", down: false }, opened: null };
  explorers.push(explorer);
  explorer.opened = (async () => {
    explorer.trace = readTrace(await unpackJson(figure.dataset.blob));
    const [from, to] = explorer.trace.window;
    Object.assign(explorer.view, { from, to });
    makeWindow(explorer);
    makeOverview(explorer);
    makeList(explorer);
    figure.querySelector(".lane").append(element("div", { className: "cursor", hidden: true }));
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (Math.abs(entry.contentRect.width - width) > 1) redraw(explorer);
      width = entry.contentRect.width;
    }).observe(figure);
    await chooseCells(explorer);
    figure.dataset.drawn = "";
  })();
  return explorer.opened;
}

function redraw(explorer) {
  explorer.due ??= requestAnimationFrame(() => drawNow(explorer));
}

function drawNow(explorer) {
  if (explorer.due) cancelAnimationFrame(explorer.due);
  explorer.due = null;
  const { figure, view, unit, panels } = explorer;
  const overview = figure.querySelector(".overview");
  const width = figure.querySelector(".cells").clientWidth;
  if (!width) return;
  const cells = panels.map((panel) => panel.cell);
  overview.parentElement.hidden = !cells.length;
  if (cells.length) drawOverview(overview, width, cells, view, unit);
  const longest = Math.max(0, ...cells.map((cell) => longestQueue(cell, view)));
  for (const panel of panels) {
    panel.width = width;
    panel.area = placesOf(panel.cell, width);
    Object.assign(panel, drawSlots(panel.canvas, width, panel.cell, view, unit, longest, explorer.pinned));
    panel.words.textContent = wordsOf(explorer, panel);
  }
  const decimals = decimalsOf(explorer);
  explorer.inputs.forEach((input, place) => { input.value = ([view.from, view.to][place] / unit.seconds).toFixed(decimals); });
  explorer.unitPlace.textContent = `${unit.name} since the trace began`;
  tellPinned(explorer);
  tellList(explorer);
}

function explorerFigures() {
  return [...document.querySelectorAll(".explorer")].filter((figure) => !figure.closest(".gone"));
}

async function drawExplorers() {
  for (const figure of explorerFigures()) {
    await openExplorer(figure);
    const explorer = explorers.find((each) => each.figure === figure);
    drawNow(explorer);
  }
}

function startExplorers() {
  const sight = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) openExplorer(target);
  }, { rootMargin: "200px" });
  for (const figure of document.querySelectorAll(".explorer")) sight.observe(figure);
  const open = () => explorers.filter((each) => each.figure.dataset.drawn !== undefined && !each.figure.closest(".gone"));
  const atRest = window.requestIdleCallback ?? ((told) => setTimeout(told, 50));
  onFilter.push(() => {
    for (const each of open()) chooseCells(each);
    atRest(drawExplorers); // so that the page prints whole
  });
  onTheme.push(() => { for (const each of open()) drawNow(each); });
}
