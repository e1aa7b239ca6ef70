// A panel for each cell that is shown: what is said of it, and what the reader points at.
function makePanels(explorer) {
  const place = explorer.figure.querySelector(".cells");
  explorer.panels = explorer.cells.flatMap((cell, number) => (cell ? [makePanel(explorer, cell, "AB"[number])] : []));
  place.replaceChildren(...explorer.panels.map((panel) => panel.box));
  drawMarks();
  const key = [["prefill", "prefill: reads the prompt"], ["decode", "decode: writes the answer, request after request in two shades"]];
  const kinds = new Set(explorer.panels.flatMap(({ cell }) => [...new Set(cell.spans.kind)]));
  const padded = explorer.panels.some(({ cell }) => cell.spans.padding.some((tokens) => tokens > 0));
  if (kinds.has(3) || padded) key.push(["padded", "padding: computed and thrown away"]);
  if (kinds.has(2)) key.push(["paused", "paused"]);
  if (explorer.panels.some(({ cell }) => cell.spans.lost.some(Boolean))) key.push(["lost", "lost its KV blocks"]);
  key.push(["queue", "requests that wait"], ["idle", "idle"]);
  explorer.figure.querySelector(".key").replaceChildren(...key.map(([name, text]) => {
    const swatch = element("i");
    const line = { padded: "--padded-line", paused: "--paused-line" }[name];
    swatch.style.background = line ? `repeating-linear-gradient(135deg, var(--${name}) 0 4px, var(${line}) 4px 5px)` : `var(--${name})`;
    return element("li", {}, swatch, text);
  }));
}

function makePanel(explorer, cell, letter) {
  const { entry } = cell;
  const marks = [entry.invalid !== null && `invalid${entry.invalid ? `: ${entry.invalid}` : ""}`, entry.partial && "partial: it did not run to its end",
    entry.simulated && "simulated"].filter(Boolean);
  const canvas = element("canvas", { className: "held", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `Slots of ${letter}: ${nameOf(entry)}. Arrow keys move the chosen seconds; the list below has each request.`);
  const panel = { cell, letter, canvas, words: element("p", { className: "faint words" }),
    moment: element("p", { className: "faint moment" }), tip: element("div", { className: "tip", hidden: true }),
    cursor: element("div", { className: "cursor", hidden: true }), seen: [], single: true };
  panel.lane = element("div", { className: "lane" }, canvas, panel.cursor, panel.tip);
  panel.box = element("section", { className: "cell" },
    element("div", { className: "head" }, element("h4", {}, letterOf(letter), " ", element("i", { className: "mark", dataset: { mark: entry.policy } }),
      nameOf(entry) + (marks.length ? ` (${marks.join("; ")})` : "")), panel.moment), panel.words, panel.lane);
  watchPanel(explorer, panel);
  return panel;
}

function watchPanel(explorer, panel) {
  const { canvas, cell } = panel, { view } = explorer;
  let drag = null;
  const pointed = (event) => {
    const box = canvas.getBoundingClientRect(), area = panel.area, scale = panel.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const time = view.from + ((x - area.left) / area.width) * (view.to - view.from);
    const slot = Math.floor((y - area.top) / area.tall), reach = ((view.to - view.from) / area.width) * 1.5;
    return { x, y, time, span: panel.single ? spanAt(cell.spans, slot, time, reach) : -1 };
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = pointed(event);
    if (drag) {
      drag.moved ||= Math.abs(at.x - drag.x) > 5;
      if (drag.moved) {
        const by = ((at.x - drag.x) / panel.area.width) * (drag.to - drag.from);
        setWindow(explorer, drag.from - by, drag.to - by);
      }
      return;
    }
    showMoment(explorer, at.time >= view.from ? at.time : null);
    showTip(explorer, panel, at);
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    drag = { x: pointed(event).x, from: view.from, to: view.to, moved: false };
    if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = pointed(event);
    if (drag && !drag.moved) {
      pin(explorer, at.span >= 0 && cell.spans.place[at.span] !== explorer.pinned ? cell.spans.place[at.span] : null);
      showMoment(explorer, at.time);
      showTip(explorer, panel, at);
    }
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "mouse") return;
    showMoment(explorer, null);
    showTip(explorer, panel, null);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the page scrolls
    event.preventDefault();
    scaleWindow(explorer, Math.min(Math.max(Math.exp(event.deltaY / 300), 0.5), 2), pointed(event).time);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => windowKeys(explorer, event));
}

function spanAt(spans, slot, time, reach) {
  // The span of a slot at a time, or the nearest one within reach of a finger.
  if (slot < 0 || slot >= spans.slots) return -1;
  let low = spans.first[slot], high = spans.first[slot + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.start[middle] <= time) low = middle + 1;
    else high = middle;
  }
  if (low > spans.first[slot] && spans.end[low - 1] + reach > time) return low - 1;
  return low < spans.first[slot + 1] && spans.start[low] - reach < time ? low : -1;
}

function wordsOf(explorer, panel) {
  const { cell, seen, single } = panel, { view } = explorer, { entry } = cell;
  if (!cell.spans.count) return "Nobody held a slot in this replay, or nothing of it was recorded.";
  const outside = entry.kept && (view.from < entry.kept[0] || view.to > entry.kept[1]);
  const kept = entry.kept ? `Of this large replay the page holds ${instant(explorer, entry.kept[0])} to ${instant(explorer, entry.kept[1])}; all of it is in the Parquet files. ` : "";
  if (outside && (view.to <= entry.kept[0] || view.from >= entry.kept[1])) return kept;
  const shares = slotShares(cell, entry.slots ?? rowsOf(cell).rows, view.from, view.to).map(([name, share]) => `${share} % ${name}`).join(", ");
  const waiting = `${threeDigits(meanQueue(cell, view.from, view.to))} requests waiting on average`;
  const slots = entry.slots ?? 0, { rows } = rowsOf(cell);
  let done = 0;
  for (let index = 0; index < cell.requests.count; index++) if (cell.requests.finished[index] > view.from && cell.requests.finished[index] <= view.to) done++;
  const finished = `${withThousands(done, 0)} ${done === 1 ? "answer" : "answers"} delivered`;
  const hidden = single && slots > rows ? `; ${slots - rows} more of the ${slots} slots were never held` : "";
  const many = single ? "" : ` ${withThousands(seen.length, 0)} bars are too many to tell apart: zoom in to see single requests. Until then, the share of slots by what they did.`;
  return `${kept}${outside ? "" : `${shares}; ${waiting}; ${finished}${hidden}.`}${many}`;
}

function showMoment(explorer, time) {
  const { view, figure, panels } = explorer;
  const overview = figure.querySelector(".lane > .cursor");
  const within = time !== null && time >= view.from && time <= view.to;
  for (const panel of panels) {
    panel.cursor.hidden = !within;
    panel.moment.textContent = time === null ? "" : `At ${instant(explorer, time)}: ${momentWords(panel.cell, time)}`;
    if (within) panel.cursor.style.left = `${(100 * (panel.area.left + ((time - view.from) / (view.to - view.from)) * panel.area.width)) / panel.width}%`;
  }
  overview.hidden = time === null;
  if (time !== null) overview.style.left = `${(100 * (time - view.first)) / (view.last - view.first)}%`;
}
