// One request: what became of it, in a tip and, while it is followed, in a table.
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
  const heads = panels.map((panel) => element("th", { scope: "col", className: "number" }, letterOf(panel.letter),
    element("span", { className: "long" }, ` ${nameOf(panel.cell.entry)}`)));
  const head = element("tr", {}, element("th"), ...heads, ...(both ? [element("th", { scope: "col", className: "number" }, "B − A")] : []));
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
