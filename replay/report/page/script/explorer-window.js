// Which seconds are shown: by buttons, by keys, and as the reader brushes them in the overview.
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
