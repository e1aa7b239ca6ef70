// What a chart's marks mean: under its title what is no policy, and on paper the policies too.
const dashArrays = { dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 3 2 3" };

function cut(name, most = 60) {
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

function keyEntry({ label, symbol, dash, colour }) {
  // What is no policy: a filling, a user's line. Policies have theirs in the bar above.
  const entry = document.createElement("span");
  const inked = colour ? shade(colour) : "currentColor";
  const shape = symbol.startsWith("square")
    ? `<rect x="2" y="2" width="18" height="10" fill="${inked}"/>`
    : symbol
      ? `<circle cx="11" cy="7" r="5" fill="${symbol.includes("open") ? "none" : inked}" stroke="${inked}" stroke-width="1.6"/>` +
        (symbol.endsWith("dot") ? `<circle cx="11" cy="7" r="1.6" fill="${inked}"/>` : "")
      : `<path d="M0 7H22" stroke="${inked}" stroke-width="2.2" stroke-dasharray="${dashArrays[dash] ?? ""}"/>`;
  entry.innerHTML = `<svg width="22" height="14" viewBox="0 0 22 14" aria-hidden="true" style="flex:none">${shape}</svg>`;
  entry.append(cut(label));
  return entry;
}

function drawKey(figure, key) {
  const place = figure.querySelector(".key") ?? document.createElement("p");
  place.className = "key";
  place.replaceChildren(...key.map(keyEntry));
  if (key.length) figure.querySelector("figcaption").append(place);
}

function printedKey(figure) {
  // On paper the bar of policies is not there: what a chart's colours and markers mean stands under it.
  const place = figure.querySelector(".print") ?? document.createElement("p");
  place.className = "print";
  const names = facts.policies.filter((policy) => isShown(null, policy.name)).map((policy) => policy.name);
  place.replaceChildren(...names.flatMap((name) => {
    const mark = document.createElement("i");
    mark.className = "mark";
    mark.dataset.mark = name;
    return [mark, `${cut(name)}\u2003`];
  }));
  figure.append(place);
  drawMarks(place);
}
