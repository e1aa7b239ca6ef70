// Tables: sorted by a click on a column's head, rows known by their mode and policy, tabs.
function valueOf(cell, kind) {
  if (!cell) return null;
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  if (kind === "text") return text.toLowerCase();
  const found = text.replaceAll(",", "").replaceAll("−", "-").match(/-?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
}

function compareValues(one, other) {
  if (typeof one === "string" || typeof other === "string") return String(one).localeCompare(String(other), undefined, { numeric: true });
  return one - other;
}

function sortBy(table, head, column) {
  const kind = head.dataset.kind ?? (head.style.textAlign === "right" ? "number" : "text");
  const before = head.getAttribute("aria-sort");
  const first = head.dataset.better === "higher" ? "descending" : "ascending";
  const direction = before === null ? first : before === "ascending" ? "descending" : "ascending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column], kind) }));
  const undefinedLast = (one, other) => (one.value === null) - (other.value === null);
  const sign = direction === "ascending" ? 1 : -1;
  rows.sort((one, other) => undefinedLast(one, other) || sign * compareValues(one.value, other.value));
  body.append(...rows.map((each) => each.row));
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(table, head, column));
  });
}

function knowRows(table) {
  // A table that was written as prose has the names of modes and policies in its columns: its rows are filtered by them.
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const settingAt = heads.findIndex((head) => head === "mode" || head === "setting");
  const policyAt = heads.indexOf("policy");
  const differenceAt = heads.indexOf("difference");
  const bare = (text) => text.trim().replace(/ \((invalid|partial)\)$/, "");
  for (const row of table.tBodies[0].rows) {
    if (settingAt >= 0) row.dataset.setting = bare(row.cells[settingAt].textContent);
    const names = policyAt >= 0 ? row.cells[policyAt].textContent.split(", ").map(bare)
      : differenceAt >= 0 ? row.cells[differenceAt].textContent.split(" − ")[0].split(", ").map(bare) : [];
    const known = names.filter((name) => policyLooks.has(name));
    if (known.length > 1) severalPolicies.set(row, known);
    if (known.length) row.dataset.policy = known[0];
  }
  if (policyAt < 0 && differenceAt < 0) knowColumns(table, heads.map(bare));
}

function knowColumns(table, heads) {
  // Policies across, of the mode that the line above the table names.
  if (!heads.some((head) => policyLooks.has(head))) return;
  for (const row of table.rows) {
    heads.forEach((head, place) => {
      if (policyLooks.has(head)) row.cells[place].dataset.policy = head;
    });
  }
  const scroll = table.closest(".scroll"), line = scroll.previousElementSibling;
  const setting = facts.settings.find((each) => line?.textContent.startsWith(`${each}: `));
  if (setting) line.dataset.setting = scroll.dataset.setting = setting;
}

function startTables() {
  for (const table of document.querySelectorAll("main table")) {
    if (!table.tHead || !table.tBodies.length) continue;
    if (!table.closest(".scroll")) {
      const scroll = document.createElement("div");
      scroll.className = "scroll";
      table.replaceWith(scroll);
      scroll.append(table);
    }
    if (!table.classList.contains("arms")) knowRows(table);
    table.dataset.sortable = "";
    makeSortable(table);
  }
  for (const tabs of document.querySelectorAll(".tabs")) {
    const buttons = [...tabs.querySelectorAll("[role=tab]")];
    const choose = (chosen) => {
      for (const button of buttons) {
        button.setAttribute("aria-selected", String(button === chosen));
        button.tabIndex = button === chosen ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).classList.toggle("gone", button !== chosen);
      }
    };
    for (const button of buttons) button.addEventListener("click", () => choose(button));
    tabs.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(event.target), last = buttons.length - 1;
      const to = { ArrowRight: at < last ? at + 1 : 0, ArrowLeft: at > 0 ? at - 1 : last, Home: 0, End: last }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      choose(buttons[to]);
      buttons[to].focus();
    });
    choose(buttons[0]);
  }
}
