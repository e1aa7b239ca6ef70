// What is shown: one trace at a time, and the modes and policies that the reader has not put aside.
const shown = {
  trace: 0,
  settings: new Set(facts.settings),
  policies: new Set(facts.policies.filter((policy) => policy.shown).map((policy) => policy.name)),
};
const severalPolicies = new Map(); // row -> the policies that share it
const onFilter = [];

function isShown(setting, policy) {
  return (!setting || shown.settings.has(setting) || !facts.settings.includes(setting)) &&
    (!policy || shown.policies.has(policy) || !policyLooks.has(policy));
}

function chip(kind, name) {
  const button = document.createElement("button");
  button.type = "button";
  if (kind === "policies") {
    const mark = document.createElement("i");
    mark.className = "mark";
    mark.dataset.mark = name;
    button.append(mark);
  }
  const label = document.createElement("span");
  label.textContent = name;
  button.append(label);
  button.dataset.name = name;
  button.title = "Click to show or hide; double-click, or Shift and a click, for this one alone";
  button.addEventListener("click", (event) => {
    if (event.detail === 2 || event.shiftKey) shown[kind] = new Set([name]);
    else if (!shown[kind].delete(name)) shown[kind].add(name);
    applyFilter();
  });
  return button;
}

function applyFilter() {
  for (const kind of ["settings", "policies"]) {
    for (const button of document.querySelectorAll(`#${kind} button`)) {
      button.setAttribute("aria-pressed", String(shown[kind].has(button.dataset.name)));
    }
  }
  for (const section of document.querySelectorAll(".trace")) {
    section.classList.toggle("gone", Number(section.dataset.trace) !== shown.trace);
  }
  for (const each of document.querySelectorAll("main [data-setting], main [data-policy]")) {
    const names = severalPolicies.get(each) ?? [each.dataset.policy];
    each.classList.toggle("gone", !names.some((name) => isShown(each.dataset.setting, name)));
  }
  for (const told of onFilter) told();
}

function startFilter() {
  const bar = document.getElementById("filter");
  for (const setting of facts.settings) document.getElementById("settings").append(chip("settings", setting));
  for (const policy of facts.policies) document.getElementById("policies").append(chip("policies", policy.name));
  document.getElementById("everything").addEventListener("click", () => {
    shown.settings = new Set(facts.settings);
    shown.policies = new Set(facts.policies.map((policy) => policy.name));
    applyFilter();
  });
  document.getElementById("trace")?.addEventListener("change", (event) => {
    shown.trace = Number(event.target.value);
    applyFilter();
  });
  bar.hidden = facts.policies.length * facts.settings.length * facts.traces.length < 2;
}
