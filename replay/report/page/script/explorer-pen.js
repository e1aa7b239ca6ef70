// What the explorer's canvases have in common: a pen, colours, hatches, an axis of time, labels.
const canvasFont = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const hatches = new Map();

function penOf(canvas, width, height) {
  // A pen in pixels of the page, as sharp as the screen is.
  const scale = Math.max(window.devicePixelRatio || 1, 1.5); // paper is sharper than a screen
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = canvasFont;
  pen.textBaseline = "middle";
  return pen;
}

function hatch(pen, paper, line) {
  const key = `${paper} ${line}`;
  if (!hatches.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 7;
    const drawing = tile.getContext("2d");
    drawing.fillStyle = paper;
    drawing.fillRect(0, 0, 7, 7);
    drawing.strokeStyle = line;
    drawing.lineWidth = 1;
    drawing.beginPath();
    for (const shift of [-7, 0, 7]) {
      drawing.moveTo(shift, 7);
      drawing.lineTo(shift + 7, 0);
    }
    drawing.stroke();
    hatches.set(key, pen.createPattern(tile, "repeat"));
  }
  return hatches.get(key);
}

function coloursNow() {
  const names = ["prefill", "decode", "decode-next", "padded", "padded-line", "paused", "paused-line", "idle", "queue", "lost", "beside",
    "pin", "ink", "faint", "line", "grid", "paper", "card", "accent"];
  return Object.fromEntries(names.map((name) => [name, css(`--${name}`)]));
}

function niceTicks(from, to, most) {
  const rough = (to - from) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let place = Math.ceil(from / step - 1e-9); place * step <= to + step * 1e-9 && ticks.length < 60; place++) {
    ticks.push({ value: place * step, text: withThousands(place * step, decimals) });
  }
  return ticks;
}

function withThousands(value, decimals) {
  const [whole, rest] = Math.abs(value).toFixed(Math.min(decimals, 20)).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return value < 0 && Number(text.replaceAll(",", "")) !== 0 ? `\u2212${text}` : text;
}

function drawAxis(pen, colours, unit, area, from, to) {
  // Ticks under an area, in the run's unit of time.
  pen.fillStyle = colours.faint;
  pen.textAlign = "center";
  const scale = area.width / (to - from);
  for (const { value, text } of niceTicks(from / unit.seconds, to / unit.seconds, area.width / 85)) {
    const x = area.left + (value * unit.seconds - from) * scale;
    pen.fillRect(x, area.bottom, 1, 4);
    const half = pen.measureText(text).width / 2;
    pen.fillText(text, Math.min(Math.max(x, half), area.left + area.width - half), area.bottom + 11);
  }
}

function laneLabel(pen, colours, text, y, left = 0) {
  pen.textAlign = "left";
  pen.globalAlpha = 0.72;
  pen.fillStyle = colours.paper;
  pen.fillRect(left + 3, y - 7, pen.measureText(text).width + 6, 14);
  pen.globalAlpha = 1;
  pen.fillStyle = colours.ink;
  pen.fillText(text, left + 6, y);
}
