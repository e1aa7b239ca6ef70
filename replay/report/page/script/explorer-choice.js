// Which cells are shown: one, and another beside it.
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
  const before = explorer.chosen, stays = explorer.panels.length && before[0] === one && before[1] === other;
  explorer.chosen = [one, other];
  makeChoices(explorer);
  if (stays) return;
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
