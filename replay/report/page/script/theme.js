// Light and dark: as the system has it, until the reader says otherwise. Policies keep their hue, and are lighter in dark.
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
const themes = ["auto", "light", "dark"];
let theme = "auto";
const onTheme = [];

function isDark() {
  return theme === "dark" || (theme === "auto" && systemDark.matches);
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function applyTheme(dark = isDark()) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = `theme: ${theme}`;
  for (const told of onTheme) told();
}

function startTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    applyTheme();
  });
  systemDark.addEventListener("change", () => applyTheme());
  applyTheme();
}

function shade(colour) {
  // A policy's colour as it is drawn now: on dark paper no darker than can be seen.
  if (document.documentElement.dataset.theme !== "dark") return colour;
  const parts = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16) / 255);
  const light = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  const towards = light < 0.45 ? (0.45 - light) / (1 - light) + 0.12 : 0;
  return `#${parts.map((part) => Math.round(255 * (part + (1 - part) * towards)).toString(16).padStart(2, "0")).join("")}`;
}

const policyLooks = new Map(facts.policies.map((policy) => [policy.name, policy]));
const grey = "#9c9c9c";

function look(policy, valid = true) {
  const known = policyLooks.get(policy) ?? { colour: grey, symbol: "circle", dash: "solid" };
  return { colour: shade(valid ? known.colour : grey), symbol: known.symbol, dash: known.dash };
}

const shapes = {
  circle: "M8 2a6 6 0 1 0 .01 0z", "triangle-up": "M8 2l6.5 12h-13z", square: "M3 3h10v10H3z", diamond: "M8 1l7 7-7 7-7-7z",
  "triangle-down": "M8 14L1.5 2h13z", cross: "M6 2h4v4h4v4h-4v4H6v-4H2V6h4z", x: "M4 2l4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4-4-4z",
  "triangle-left": "M2 8l12-6.5v13z", "triangle-right": "M14 8L2 1.5v13z", pentagon: "M8 1l7 5.3-2.7 8.2H3.7L1 6.3z",
  hexagon: "M4.5 2h7L15 8l-3.5 6h-7L1 8z", star: "M8 1l2 5h5l-4 3.4L12.6 15 8 11.6 3.4 15 5 9.400 1 6h5z", "diamond-tall": "M8 1l5 7-5 7-5-7z",
};

function drawMarks(within = document) {
  for (const place of within.querySelectorAll("[data-mark]")) {
    const { colour, symbol } = look(place.dataset.mark);
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("viewBox", "0 0 16 16");
    drawing.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", shapes[symbol] ?? shapes.circle);
    path.setAttribute("fill", colour);
    drawing.append(path);
    place.replaceChildren(drawing);
  }
}
