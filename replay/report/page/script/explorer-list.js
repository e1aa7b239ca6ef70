// The requests of the seconds that are shown, as a list.
const mostListed = 200;
const listColumns = [
  { key: "row", head: "request", number: true },
  { key: "user", head: "user" },
  { key: "priority", head: "priority", number: true },
  { key: "prompt", head: "prompt", number: true, text: (value) => withThousands(value, 0) },
  { key: "output", head: "output", number: true, text: (value) => withThousands(value, 0) },
  { key: "arrived", head: "arrived", number: true, text: (value, explorer) => instant(explorer, value) },
  { key: "wait", head: "queue wait", number: true, text: duration },
  { key: "ttft", head: "TTFT", number: true, text: duration },
  { key: "e2e", head: "E2E", number: true, text: duration },
  { key: "evictions", head: "evictions", number: true },
  { key: "status", head: "ended" },
  { key: "beside", head: "E2E in B", number: true, text: duration },
  { key: "by", head: "B − A", number: true, text: (value) => (value > 0 ? "+" : "") + duration(value) },
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
    found.push({ place, row: trace.row[place], user: trace.user[place], priority: trace.priority[place],
      prompt: trace.prompt[place], output: trace.output[place],
      ...(facts[0] ?? { arrived: NaN, wait: NaN, ttft: NaN, e2e: NaN, evictions: null, status: "not in A" }), beside, by: beside - e2e });
  }
  return found;
}

function isMissing(value) {
  return value === null || value === undefined || Number.isNaN(value);
}

function inOrder({ column, down }, found) {
  // What is missing comes last, whichever way the list is sorted.
  const sign = down ? -1 : 1;
  return found.sort((one, other) => {
    const [first, second] = [one[column], other[column]];
    const compared = isMissing(first) || isMissing(second) ? isMissing(first) - isMissing(second) : sign * compareValues(first, second);
    return compared || one.place - other.place;
  });
}

function columnsFor({ panels }, found) {
  // Those that say something: of B where it is there, of users and priorities where any is known.
  const told = {
    user: found.some((row) => row.user !== null), priority: found.some((row) => row.priority !== null),
    evictions: found.some((row) => row.evictions), beside: panels.length > 1, by: panels.length > 1,
  };
  return listColumns.filter(({ key }) => told[key] ?? true);
}

function tellList(explorer) {
  const list = explorer.figure.querySelector(".list"), summary = list.querySelector("summary");
  if (!list.open || !explorer.panels.length) {
    summary.textContent = "The requests of these seconds, as a list";
    list.querySelector(".scroll")?.remove();
    return;
  }
  const found = inOrder(explorer.sort, listed(explorer)), kept = found.slice(0, mostListed);
  const more = found.length > kept.length ? `; the first ${mostListed} in this order` : "";
  summary.textContent = `${withThousands(found.length, 0)} requests were there in these seconds${more}`;
  const columns = columnsFor(explorer, found);
  const head = element("tr", {}, ...columns.map((column) => listHead(explorer, column)));
  const rows = kept.map((row) => listRow(explorer, columns, row));
  const table = element("table", { dataset: { sortable: "" } }, element("thead", {}, head), element("tbody", {}, ...rows));
  const scroll = list.querySelector(".scroll") ?? list.appendChild(element("div", { className: "scroll", tabIndex: 0 }));
  const at = [scroll.scrollTop, scroll.scrollLeft];
  const focused = scroll.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
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
    const said = isMissing(row[key]) ? "–" : key === "status" ? row.status.replace("_", " ") : text ? text(row[key], explorer) : String(row[key]);
    if (key !== "row") return element("td", { className: number ? "number" : "" }, said);
    const button = element("button", { type: "button", title: "follow this request", dataset: { focus: `row-${row.place}` } }, said);
    button.addEventListener("click", () => pin(explorer, explorer.pinned === row.place ? null : row.place));
    return element("td", { className: "number" }, button);
  });
  return element("tr", { className: explorer.pinned === row.place ? "chosen" : "" }, ...cells);
}
