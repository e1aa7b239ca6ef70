// The overview of whole replays over time, as it is drawn, with the seconds that the reader has brushed.
function drawOverview(canvas, width, cells, view, unit) {
  const colours = coloursNow();
  const lanes = [
    { name: "running", of: (cell) => cell.overview.running, scale: 10 },
    { name: "waiting", of: (cell) => cell.overview.waiting, scale: 10 },
    { name: "KV blocks used, %", of: (cell) => cell.overview.kv, scale: 1, top: 100 },
    { name: "output tokens/s", of: (cell) => cell.overview.rate, scale: 1 },
  ].filter((lane) => cells.some((cell) => lane.of(cell)));
  const evicted = cells.some((cell) => cell.overview.evicted.some((count) => count > 0));
  const tall = 34, gap = 6, lost = evicted ? 16 : 0;
  const area = { left: 0, width, bottom: lanes.length * (tall + gap) + lost };
  const pen = penOf(canvas, width, area.bottom + 20);
  const x = (time) => ((time - view.first) / (view.last - view.first)) * width;
  const labels = [];
  lanes.forEach((lane, place) => {
    const top = place * (tall + gap);
    const highest = lane.top ?? Math.max(1, ...cells.map((cell) => lane.of(cell).reduce((most, value) => Math.max(most, value), 0) / lane.scale));
    pen.fillStyle = colours.idle;
    pen.fillRect(0, top, width, tall);
    cells.forEach((cell, number) => {
      const values = lane.of(cell);
      if (values) drawLine(pen, values, (place) => x(cell.from + ((cell.to - cell.from) * place) / values.length),
        (value) => top + tall - (Math.min(value / lane.scale / highest, 1)) * (tall - 2), top + tall, number ? colours.beside : colours.accent, number === 0);
    });
    labels.push([lane.top ? lane.name : `${lane.name}, at most ${withThousands(highest, highest < 10 && highest % 1 ? 1 : 0)}`, top + 8]);
  });
  if (evicted) drawEvictions(pen, colours, cells, x, area.bottom - lost);
  if (evicted) labels.push([cells.length > 1 ? "evictions (above A, below B)" : "evictions", area.bottom - 10]);
  drawBrush(pen, colours, x(view.from), x(view.to), width, area.bottom);
  for (const [text, y] of labels) laneLabel(pen, colours, text, y);
  drawAxis(pen, colours, unit, area, view.first, view.last);
}

function drawLine(pen, values, x, y, ground, colour, filled) {
  pen.beginPath();
  pen.moveTo(x(0), ground);
  values.forEach((value, place) => {
    pen.lineTo(x(place), y(value));
    pen.lineTo(x(place + 1), y(value));
  });
  pen.lineTo(x(values.length), ground);
  if (filled) {
    pen.globalAlpha = 0.28;
    pen.fillStyle = colour;
    pen.fill();
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2;
  pen.stroke();
}

function drawEvictions(pen, colours, cells, x, top) {
  pen.fillStyle = colours.lost;
  cells.forEach((cell, number) => cell.overview.evicted.forEach((count, place) => {
    if (count) pen.fillRect(x(cell.from + ((cell.to - cell.from) * (place + 0.5)) / cell.overview.evicted.length) - 0.75, top + number * 6, 1.5, 5);
  }));
}

function drawBrush(pen, colours, left, right, width, bottom) {
  pen.globalAlpha = 0.62;
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, left, bottom);
  pen.fillRect(right, 0, width - right, bottom);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 1.2;
  pen.strokeRect(Math.max(left, 0.6), 0.6, Math.max(Math.min(right, width - 0.6) - Math.max(left, 0.6), 1.5), bottom - 1.2);
  pen.fillStyle = colours.ink;
  for (const edge of [left, right]) pen.fillRect(Math.min(Math.max(edge - 2.5, 0), width - 5), bottom / 2 - 9, 5, 18);
}
