// The explorer: one or two cells beside each other over the same seconds, which the reader brushes in the overview.
const explorers = []; // one for each trace, once it is opened
const mostListed = 200;
const boundWords = { gate: "bound by the mode's gate", slots: "bound by slots", blocks: "bound by KV blocks", budget: "bound by the token budget",
  policy: "held back by the policy's own rule", nothing: "nothing refused" };

function element(name, properties = {}, ...children) {
  const { dataset, ...plain } = properties;
  const made = Object.assign(document.createElement(name), plain);
  Object.assign(made.dataset, dataset);
  made.append(...children);
  return made;
}

function threeDigits(value) {
  if (value === null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size > 0 && size < 0.995) return withThousands(value, 2 - Math.floor(Math.log10(size))).replace(/0+$/, "");
  return withThousands(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function duration(seconds) {
  if (seconds === null || Number.isNaN(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size >= 1 || size === 0) return `${threeDigits(seconds)} s`;
  return size >= 1e-4 ? `${threeDigits(seconds * 1e3)} ms` : `${threeDigits(seconds * 1e6)} µs`;
}

function unitOf(length) {
  return length >= 1 ? { name: "s", seconds: 1 } : length >= 1e-3 ? { name: "ms", seconds: 1e-3 } : { name: "µs", seconds: 1e-6 };
}

function decimalsOf(explorer) {
  const length = (explorer.view.to - explorer.view.from) / explorer.unit.seconds;
  return Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(length))));
}

function instant(explorer, seconds) {
  return `${withThousands(seconds / explorer.unit.seconds, decimalsOf(explorer))} ${explorer.unit.name}`;
}

// ---- opening, and choosing cells

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

function allowed(explorer) {
  return explorer.trace.cells.filter((cell) => isShown(cell.setting, cell.policy));
}

function firstChoice(explorer) {
  // Static beside continuous batching under one policy says most; else another mode, else another policy. Valid cells first.
  const every = allowed(explorer), best = every.filter((cell) => cell.invalid === null && cell.spans), cells = best.length ? best : every;
  const one = cells.find((cell) => cell.policy === "fifo") ?? cells[0] ?? null;
  if (!one) return [null, null];
  const pool = [...cells, ...every], others = pool.filter((cell) => cell.policy === one.policy && cell.setting !== one.setting);
  const other = others.find((cell) => cell.setting.startsWith("continuous")) ?? others[0] ?? pool.find((cell) => cell.policy !== one.policy);
  return [one, other ?? null];
}

async function chooseCells(explorer, wanted = explorer.chosen) {
  const cells = allowed(explorer);
  let [one, other] = wanted;
  if (!explorer.everChosen) [one, other] = firstChoice(explorer);
  explorer.everChosen = true;
  const like = (cell) => cell && (cells.find((each) => each === cell) ?? cells.find((each) => each.policy === cell.policy) ??
    cells.find((each) => each.setting === cell.setting) ?? cells[0] ?? null);
  one = like(one) ?? cells[0] ?? null;
  other = other && cells.includes(other) ? other : null;
  explorer.chosen = [one, other];
  makeChoices(explorer);
  const asked = explorer.chosen;
  const read = await Promise.all(asked.map((entry) => entry && readOnce(explorer, entry)));
  if (asked !== explorer.chosen) return; // the reader has gone on
  explorer.cells = read;
  const there = read.filter(Boolean);
  if (there.length) {
    explorer.view.first = Math.min(...there.map((cell) => cell.from));
    explorer.view.last = Math.max(...there.map((cell) => cell.to));
    explorer.unit = unitOf(explorer.view.last - explorer.view.first);
  }
  makePanels(explorer);
  setWindow(explorer, explorer.view.from, explorer.view.to);
}

async function readOnce(explorer, entry) {
  if (!explorer.read.has(entry)) {
    if (explorer.read.size >= 8) explorer.read.delete(explorer.read.keys().next().value); // a large run would fill the memory
    explorer.read.set(entry, unpackJson(entry.blob).then((packed) => readCell(packed, explorer.trace, entry)));
  }
  return explorer.read.get(entry);
}

function makeChoices(explorer) {
  const place = explorer.figure.querySelector(".choices");
  const focused = document.activeElement?.closest?.(".choices") === place ? document.activeElement.dataset.choice : null;
  place.replaceChildren(...explorer.chosen.map((entry, number) => choiceOf(explorer, entry, number)));
  if (focused) place.querySelector(`[data-choice="${focused}"]`)?.focus();
}

function choiceOf(explorer, entry, number) {
  const cells = allowed(explorer), letter = "AB"[number];
  const names = (key, found) => [...new Set(found.map((cell) => cell[key]))];
  const select = (key, values, value, said) => {
    const made = element("select", { dataset: { choice: `${letter}-${key}` }, ariaLabel: `${said} of ${letter}` },
      ...values.map((each) => element("option", { value: String(each), selected: each === value }, key === "repeat" ? `repeat ${each}` : String(each))));
    made.addEventListener("change", () => pick(explorer, number, key, made.value));
    return made;
  };
  const box = element("span", { className: "choice" }, letterOf(letter));
  if (!cells.length) box.append(number ? "" : "every mode or policy is put aside");
  else if (!entry) box.append(select("setting", ["nothing beside it", ...names("setting", cells)], "nothing beside it", "mode"));
  else {
    const inSetting = cells.filter((cell) => cell.setting === entry.setting);
    const repeats = inSetting.filter((cell) => cell.policy === entry.policy);
    box.append(select("setting", [...(number ? ["nothing beside it"] : []), ...names("setting", cells)], entry.setting, "mode"),
      select("policy", names("policy", inSetting), entry.policy, "policy"));
    if (repeats.length > 1) box.append(select("repeat", names("repeat", repeats), entry.repeat, "repeat"));
  }
  return box;
}

function pick(explorer, number, key, value) {
  const wanted = [...explorer.chosen];
  if (key === "setting" && value === "nothing beside it") wanted[number] = null;
  else {
    const before = explorer.chosen[number] ?? explorer.chosen[0];
    const now = { setting: before.setting, policy: before.policy, repeat: before.repeat, [key]: key === "repeat" ? Number(value) : value };
    const found = allowed(explorer).filter((cell) => cell.setting === now.setting);
    wanted[number] = found.find((cell) => cell.policy === now.policy && cell.repeat === now.repeat) ??
      found.find((cell) => cell.policy === now.policy) ?? found[0];
  }
  return chooseCells(explorer, wanted);
}

// ---- the window

function setWindow(explorer, from, to) {
  const { view } = explorer;
  const whole = view.last - view.first;
  const length = Math.min(Math.max(to - from, whole * 1e-7, explorer.trace.tick * 20), whole);
  view.from = Math.min(Math.max(from, view.first), view.last - length);
  view.to = view.from + length;
  showMoment(explorer, null); // what was pointed at has moved
  for (const panel of explorer.panels) panel.tip.hidden = true;
  redraw(explorer);
}

function moveWindow(explorer, share) {
  const length = explorer.view.to - explorer.view.from;
  setWindow(explorer, explorer.view.from + share * length, explorer.view.to + share * length);
}

function scaleWindow(explorer, factor, around = (explorer.view.from + explorer.view.to) / 2) {
  setWindow(explorer, around - (around - explorer.view.from) * factor, around + (explorer.view.to - around) * factor);
}

function makeWindow(explorer) {
  const place = explorer.figure.querySelector(".window");
  const button = (text, title, act) => {
    const made = element("button", { type: "button", title, ariaLabel: title }, text);
    made.addEventListener("click", act);
    return made;
  };
  const input = (said) => {
    const made = element("input", { type: "number", step: "any", ariaLabel: `${said}, in the run's unit of time` });
    made.addEventListener("change", () => {
      const [from, to] = explorer.inputs.map((each) => Number(each.value) * explorer.unit.seconds);
      if (to > from) setWindow(explorer, from, to);
      else redraw(explorer);
    });
    return made;
  };
  explorer.inputs = [input("from"), input("to")];
  explorer.unitPlace = element("span");
  place.append(
    button("◀", "earlier", () => moveWindow(explorer, -0.5)), button("▶", "later", () => moveWindow(explorer, 0.5)),
    button("+", "fewer seconds", () => scaleWindow(explorer, 0.5)), button("−", "more seconds", () => scaleWindow(explorer, 2)),
    button("whole run", "all of it", () => setWindow(explorer, explorer.view.first, explorer.view.last)),
    button("fullest seconds", "the seconds that the page began with", () => setWindow(explorer, ...explorer.trace.window)),
    element("label", {}, "from ", explorer.inputs[0]), element("label", {}, "to ", explorer.inputs[1]), explorer.unitPlace,
  );
}

function windowKeys(explorer, event) {
  const acts = { ArrowLeft: () => moveWindow(explorer, -0.25), ArrowRight: () => moveWindow(explorer, 0.25), "+": () => scaleWindow(explorer, 0.5),
    "=": () => scaleWindow(explorer, 0.5), "-": () => scaleWindow(explorer, 2), Home: () => setWindow(explorer, ...explorer.trace.window),
    Escape: () => pin(explorer, null) };
  if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  acts[event.key]();
}

function makeOverview(explorer) {
  const canvas = explorer.figure.querySelector(".overview"), { view } = explorer;
  let drag = null;
  const timeAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return view.first + ((event.clientX - box.left) / box.width) * (view.last - view.first);
  };
  const near = (event) => ((event.pointerType === "mouse" ? 6 : 16) / canvas.getBoundingClientRect().width) * (view.last - view.first);
  const grip = (event) => {
    const time = timeAt(event), reach = near(event);
    if (Math.abs(time - view.from) < reach && view.to - view.from > 3 * reach) return "from";
    if (Math.abs(time - view.to) < reach && view.to - view.from > 3 * reach) return "to";
    return time > view.from && time < view.to && view.to - view.from < 0.9 * (view.last - view.first) ? "move" : "new";
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    drag = { kind: grip(event), at: timeAt(event), from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      canvas.style.cursor = { from: "ew-resize", to: "ew-resize", move: "grab", new: "crosshair" }[grip(event)];
      showMoment(explorer, timeAt(event));
      return;
    }
    const time = timeAt(event), by = time - drag.at;
    drag.moved ||= Math.abs(by) > near(event) / 3;
    if (!drag.moved) return;
    if (drag.kind === "move") setWindow(explorer, drag.from + by, drag.to + by);
    else {
      const still = drag.kind === "from" ? drag.to : drag.kind === "to" ? drag.from : drag.at;
      setWindow(explorer, Math.max(Math.min(still, time), view.first), Math.min(Math.max(still, time), view.last));
    }
  });
  const end = (event) => {
    if (drag && !drag.moved && event.type === "pointerup") {
      const half = (view.to - view.from) / 2;
      setWindow(explorer, drag.at - half, drag.at + half);
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => showMoment(explorer, null));
  canvas.addEventListener("keydown", (event) => windowKeys(explorer, event));
}

// ---- panels

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

function letterOf(letter) {
  return element("span", { className: `letter ${letter.toLowerCase()}` }, letter);
}

function nameOf(entry) {
  return `${entry.setting}, ${entry.policy}${entry.repeat > 1 ? `, repeat ${entry.repeat}` : ""}`;
}

function makePanel(explorer, cell, letter) {
  const { entry } = cell;
  const marks = [entry.invalid !== null && `invalid${entry.invalid ? `: ${entry.invalid}` : ""}`, entry.partial && "partial: it did not run to its end",
    entry.simulated && "simulated"].filter(Boolean);
  const canvas = element("canvas", { className: "held", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `Slots of ${letter}: ${nameOf(entry)}. Arrow keys move the chosen seconds; the list below has each request.`);
  const panel = { cell, letter, canvas, words: element("p", { className: "faint words" }), moment: element("p", { className: "faint moment" }), tip: element("div", { className: "tip", hidden: true }),
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
    return { x, y, time, span: panel.single ? spanAt(cell.spans, Math.floor((y - area.top) / area.tall), time, ((view.to - view.from) / area.width) * 1.5) : -1 };
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

// ---- drawing

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

function wordsOf(explorer, panel) {
  const { cell, seen, single } = panel, { view } = explorer, { entry } = cell;
  if (!cell.spans.count) return "This replay kept no record of who held which slot.";
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

function momentWords(cell, time) {
  const moment = momentOf(cell, time);
  if (!moment) return "not running";
  return [`${moment.running} running`, `${moment.waiting} waiting`, moment.kv !== null && `KV ${moment.kv} %`, moment.bound && boundWords[moment.bound]]
    .filter(Boolean).join(", ");
}

// ---- a request

function factsOf(cell, place) {
  // What became of a request in a cell; null where the page does not have it.
  const { requests } = cell, index = requests.at[place];
  if (index < 0) return null;
  const { due, admitted, first_token: first, last_token: last, finished } = requests, generated = requests.generated[index];
  return {
    arrived: due[index], wait: admitted[index] - due[index], ttft: first[index] - due[index], e2e: finished[index] - due[index],
    tpot: generated > 1 ? (last[index] - first[index]) / (generated - 1) : NaN, status: requests.status[index], reason: requests.reasons.get(index) ?? null,
    generated, evictions: requests.evictions[index], swaps: requests.swaps[index], ended: requests.ended[index],
  };
}

function statusWords(facts) {
  return facts.status.replace("_", " ") + (facts.reason ? ` (${facts.reason})` : "");
}

function whoIs(trace, place) {
  const parts = [trace.user[place] !== null && `user ${trace.user[place]}`, trace.priority[place] !== null && `priority ${trace.priority[place]}`,
    `${withThousands(trace.prompt[place], 0)} prompt tokens`, `${withThousands(trace.output[place], 0)} output tokens`];
  return parts.filter(Boolean).join(", ");
}

function showTip(explorer, panel, at) {
  for (const each of explorer.panels) if (each !== panel || !at || at.span < 0) each.tip.hidden = true;
  if (!at || at.span < 0) return;
  const { cell, tip } = panel, { spans, trace } = cell;
  const place = spans.place[at.span], facts = factsOf(cell, place);
  const doing = ["prefill", "decode", "paused", "padding"][spans.kind[at.span]];
  const tokens = spans.kind[at.span] < 2 ? `, ${withThousands(spans.tokens[at.span], 0)} tokens` : "";
  const padding = spans.kind[at.span] < 2 && spans.padding[at.span] ? ` and ${withThousands(spans.padding[at.span], 0)} of padding` : "";
  const lines = [whoIs(trace, place), `${doing} in slot ${spans.slot[at.span] + 1}, ${instant(explorer, spans.start[at.span])} to ${instant(explorer, spans.end[at.span])}${tokens}${padding}`];
  if (spans.lost[at.span]) lines.push(spans.lost[at.span] === 1 ? "then evicted: its tokens are computed again" : "then swapped out to host memory");
  if (facts) {
    lines.push(`arrived at ${instant(explorer, facts.arrived)}`, `queue wait ${duration(facts.wait)}, TTFT ${duration(facts.ttft)}, E2E ${duration(facts.e2e)}`,
      statusWords(facts) + (facts.evictions ? `, evicted ${facts.evictions} times` : ""));
  }
  lines.push(`at ${instant(explorer, at.time)}: ${momentWords(cell, at.time)}`);
  tip.replaceChildren(element("b", {}, `request ${trace.row[place]}`), ...lines.map((text) => element("span", {}, text.replace(/(\d) (s|ms|µs|%)(?![a-z])/g, "$1\u00a0$2"))));
  tip.hidden = false;
  const box = panel.canvas.getBoundingClientRect(), scale = box.width / panel.width;
  const left = at.x * scale + 14, room = box.width - tip.offsetWidth;
  tip.style.left = `${Math.max(0, left > room ? Math.max(0, at.x * scale - tip.offsetWidth - 14) : left)}px`;
  tip.style.top = `${at.y * scale + 16}px`;
}

function pin(explorer, place) {
  explorer.pinned = place;
  redraw(explorer);
}

function stayOf(panel, place) {
  // From its arrival to its end in a cell.
  const { requests } = panel.cell, index = requests.at[place];
  return index < 0 ? null : [requests.due[index], Number.isNaN(requests.ended[index]) ? panel.cell.to : requests.ended[index]];
}

function tellPinned(explorer) {
  const place = explorer.figure.querySelector(".pinned"), { pinned, panels, trace } = explorer;
  place.hidden = pinned === null || !panels.length;
  const told = JSON.stringify([pinned, panels.map((panel) => panel.cell.entry.name)]);
  if (place.hidden || place.dataset.told === told) return;
  place.dataset.told = told;
  const found = panels.map((panel) => factsOf(panel.cell, pinned));
  const both = found.length > 1 && found.every(Boolean);
  const row = (name, of, difference) => {
    const texts = found.map((facts, place) => (facts ? of(facts) : panels[place].cell.entry.kept ? "not in this page" : "not in this cell"));
    const by = both && difference ? difference(found[1]) - difference(found[0]) : NaN;
    return element("tr", {}, element("th", { scope: "row" }, name), ...texts.map((text) => element("td", { className: "number" }, text)),
      ...(both ? [element("td", { className: "number" }, Number.isNaN(by) ? "" : (by > 0 ? "+" : "") + duration(by))] : []));
  };
  const rows = [
    row("queue wait", (facts) => duration(facts.wait), (facts) => facts.wait), row("TTFT", (facts) => duration(facts.ttft), (facts) => facts.ttft),
    row("time per token", (facts) => duration(facts.tpot), (facts) => facts.tpot), row("E2E", (facts) => duration(facts.e2e), (facts) => facts.e2e),
    row("evictions", (facts) => String(facts.evictions ?? "–")), row("tokens written", (facts) => String(facts.generated ?? "–")), row("ended", statusWords),
  ];
  const head = element("tr", {}, element("th"), ...panels.map((panel) => element("th", { scope: "col", className: "number" }, letterOf(panel.letter), element("span", { className: "long" }, ` ${nameOf(panel.cell.entry)}`))),
    ...(both ? [element("th", { scope: "col", className: "number" }, "B − A")] : []));
  const stays = panels.map((panel) => stayOf(panel, pinned)).filter(Boolean);
  const show = element("button", { type: "button" }, "show all of it");
  show.addEventListener("click", () => {
    const from = Math.min(...stays.map((stay) => stay[0])), to = Math.max(...stays.map((stay) => stay[1]));
    setWindow(explorer, from - 0.04 * (to - from), to + 0.04 * (to - from));
  });
  const close = element("button", { type: "button" }, "let go");
  close.addEventListener("click", () => pin(explorer, null));
  place.replaceChildren(element("h4", {}, `Request ${trace.row[pinned]}: ${whoIs(trace, pinned)}`),
    element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))), show, " ", close);
}

// ---- the list

const listColumns = [
  { key: "row", head: "request", number: true }, { key: "user", head: "user" }, { key: "priority", head: "priority", number: true },
  { key: "prompt", head: "prompt", number: true, text: (value) => withThousands(value, 0) }, { key: "output", head: "output", number: true, text: (value) => withThousands(value, 0) },
  { key: "arrived", head: "arrived", number: true, text: (value, explorer) => instant(explorer, value) }, { key: "wait", head: "queue wait", number: true, text: duration },
  { key: "ttft", head: "TTFT", number: true, text: duration }, { key: "e2e", head: "E2E", number: true, text: duration },
  { key: "evictions", head: "evictions", number: true }, { key: "status", head: "ended" },
  { key: "beside", head: "E2E in B", number: true, text: duration }, { key: "by", head: "B − A", number: true, text: (value) => (value > 0 ? "+" : "") + duration(value) },
];

function makeList(explorer) {
  const list = explorer.figure.querySelector(".list");
  list.addEventListener("toggle", () => tellList(explorer));
}

function listed(explorer) {
  // The requests that had arrived and had not ended at some moment of the window, in A or in B.
  const { panels, view, trace } = explorer, found = [];
  for (let place = 0; place < trace.count; place++) {
    const there = panels.some((panel) => {
      const stay = stayOf(panel, place);
      return stay && stay[0] < view.to && stay[1] > view.from;
    });
    if (!there) continue;
    const facts = panels.map((panel) => factsOf(panel.cell, place)), e2e = facts[0]?.e2e ?? NaN, beside = facts[1]?.e2e ?? NaN;
    found.push({ place, row: trace.row[place], user: trace.user[place], priority: trace.priority[place], prompt: trace.prompt[place], output: trace.output[place],
      ...(facts[0] ?? { arrived: NaN, wait: NaN, ttft: NaN, e2e: NaN, evictions: null, status: "not in A" }), beside, by: beside - e2e });
  }
  return found;
}

function tellList(explorer) {
  const list = explorer.figure.querySelector(".list"), { sort, panels } = explorer;
  if (!list.open || !panels.length) {
    list.querySelector("summary").textContent = "The requests of these seconds, as a list";
    list.querySelector(".scroll")?.remove();
    return;
  }
  const found = listed(explorer);
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  const sign = sort.down ? -1 : 1;
  found.sort((one, other) => missing(one[sort.column]) - missing(other[sort.column]) || (missing(one[sort.column]) ? 0 : sign * compareValues(one[sort.column], other[sort.column])) || one.place - other.place);
  const kept = found.slice(0, mostListed);
  list.querySelector("summary").textContent = `${withThousands(found.length, 0)} requests were there in these seconds${found.length > kept.length ? `; the first ${mostListed} in this order` : ""}`;
  const columns = listColumns.filter(({ key }) => (panels.length > 1 || !["beside", "by"].includes(key)) && (!["user", "priority"].includes(key) || found.some((row) => row[key] !== null)) &&
    (key !== "evictions" || found.some((row) => row.evictions)));
  const head = element("tr", {}, ...columns.map((column) => listHead(explorer, column)));
  const rows = kept.map((row) => listRow(explorer, columns, row));
  const table = element("table", { dataset: { sortable: "" } }, element("thead", {}, head), element("tbody", {}, ...rows));
  const scroll = list.querySelector(".scroll") ?? list.appendChild(element("div", { className: "scroll", tabIndex: 0 }));
  const at = [scroll.scrollTop, scroll.scrollLeft], focused = scroll.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  scroll.replaceChildren(table);
  [scroll.scrollTop, scroll.scrollLeft] = at;
  if (focused) scroll.querySelector(`[data-focus="${focused}"]`)?.focus({ preventScroll: true });
}

function listHead(explorer, { key, head, number }) {
  const { sort } = explorer;
  const button = element("button", { type: "button", dataset: { focus: `head-${key}` } }, head);
  button.addEventListener("click", () => {
    explorer.sort = { column: key, down: sort.column === key ? !sort.down : Boolean(number) && !["row", "arrived"].includes(key) };
    tellList(explorer);
  });
  const made = element("th", { scope: "col", className: number ? "number" : "" }, button);
  if (sort.column === key) made.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
  return made;
}

function listRow(explorer, columns, row) {
  const cells = columns.map(({ key, number, text }) => {
    const missing = row[key] === null || row[key] === undefined || Number.isNaN(row[key]);
    const said = missing ? "–" : key === "status" ? row.status.replace("_", " ") : text ? text(row[key], explorer) : String(row[key]);
    if (key !== "row") return element("td", { className: number ? "number" : "" }, said);
    const button = element("button", { type: "button", title: "follow this request", dataset: { focus: `row-${row.place}` } }, said);
    button.addEventListener("click", () => pin(explorer, explorer.pinned === row.place ? null : row.place));
    return element("td", { className: "number" }, button);
  });
  return element("tr", { className: explorer.pinned === row.place ? "chosen" : "" }, ...cells);
}

// ---- with the page

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
