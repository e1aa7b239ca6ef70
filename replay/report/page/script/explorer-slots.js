// Bars on the slots of a batch, and who waits above them.
const mostBars = 6000;

function rowsOf(cell) {
  // Slots that are drawn: all that were ever held and an idle one; of a small batch all.
  const slots = cell.entry.slots ?? cell.spans.slots;
  const rows = slots <= 10 ? Math.max(slots, cell.spans.slots) : Math.max(Math.min(slots, cell.spans.slots + 1), 10);
  return { rows, tall: Math.min(24, Math.max(3, 480 / rows)) };
}

function placesOf(cell, width) {
  // Where things are on the canvas of a cell.
  const { rows, tall } = rowsOf(cell);
  const left = width < 500 ? 26 : 40, top = 40;
  return { left, width: width - left - 2, top, rows, tall, bottom: top + rows * tall };
}

function barHeight({ tall }) {
  return tall > 6 ? tall - 3 : tall; // with a gap to the next slot, where there is room for one
}

function drawSlots(canvas, width, cell, view, unit, longest, pinned) {
  // The spans that were drawn, by their place; none of them where there are too many.
  const colours = coloursNow();
  const area = placesOf(cell, width);
  const pen = penOf(canvas, width, area.bottom + 20);
  const x = (time) => area.left + ((time - view.from) / (view.to - view.from)) * area.width;
  drawQueue(pen, colours, area, cell, view, x, longest);
  pen.fillStyle = colours.idle;
  for (let row = 0; row < area.rows; row++) pen.fillRect(area.left, area.top + row * area.tall, area.width, barHeight(area));
  const seen = spansWithin(cell.spans, view.from, view.to);
  const single = seen.length <= mostBars;
  pen.save();
  pen.beginPath();
  pen.rect(area.left, 0, area.width, area.bottom + 1);
  pen.clip();
  if (single) {
    drawBars(pen, colours, area, cell, seen, x, pinned);
    drawNumbers(pen, colours, area, cell, seen, x);
    if (pinned !== null) drawPinned(pen, colours, area, cell, pinned, x);
  } else drawDensity(pen, colours, area, cell, view);
  pen.restore();
  drawMissing(pen, colours, area, cell, view, x);
  if (single) drawSlotNames(pen, colours, area);
  drawAxis(pen, colours, unit, area, view.from, view.to);
  return { seen, single };
}

function drawQueue(pen, colours, area, cell, view, x, longest) {
  const { times, waiting } = cell.queue;
  const tall = 30, ground = 32;
  pen.fillStyle = colours.idle;
  pen.fillRect(area.left, ground - tall, area.width, tall);
  pen.fillStyle = colours.queue;
  const y = (count) => ground - (count / Math.max(longest, 1)) * tall;
  pen.beginPath();
  pen.moveTo(area.left, ground);
  let before = 0;
  for (let place = 0; place < times.length && times[place] < view.to; place++) {
    if (times[place] > view.from) {
      const at = x(times[place]);
      pen.lineTo(Math.max(at, area.left), y(before));
      pen.lineTo(Math.max(at, area.left), y(waiting[place]));
    } else pen.lineTo(area.left, y(waiting[place]));
    before = waiting[place];
  }
  pen.lineTo(area.left + area.width, y(before));
  pen.lineTo(area.left + area.width, ground);
  pen.fill();
  laneLabel(pen, colours, `waiting${longest ? `, full height ${withThousands(longest, 0)}` : ": nobody"}`, ground - tall + 8, area.left);
}

function longestQueue(cell, view) {
  let most = 0;
  const { times, waiting } = cell.queue;
  for (let place = 0; place < times.length; place++) {
    const end = place + 1 < times.length ? times[place + 1] : Infinity;
    if (times[place] < view.to && end > view.from) most = Math.max(most, waiting[place]);
  }
  return most;
}

function drawBars(pen, colours, area, cell, seen, x, pinned) {
  const { spans } = cell;
  const tall = barHeight(area);
  const padding = tall >= 8 ? hatch(pen, colours.padded, colours["padded-line"]) : colours.padded;
  const paused = tall >= 8 ? hatch(pen, colours.paused, colours["paused-line"]) : colours.paused;
  for (const each of seen) {
    const left = Math.max(x(spans.start[each]), area.left - 2), right = Math.min(x(spans.end[each]), area.left + area.width + 2);
    const wide = Math.max(right - left, 0.7), top = area.top + spans.slot[each] * area.tall;
    pen.globalAlpha = pinned === null || spans.place[each] === pinned ? 1 : 0.36;
    const kind = spans.kind[each];
    if (kind === 0) {
      const own = ownShare(spans, each) * tall;
      if (own < tall) {
        pen.fillStyle = padding;
        pen.fillRect(left, top, wide, tall - own);
      }
      pen.fillStyle = colours.prefill;
      pen.fillRect(left, top + tall - own, wide, own);
    } else {
      pen.fillStyle = kind === 1 ? colours[spans.second[each] ? "decode-next" : "decode"] : kind === 2 ? paused : padding;
      pen.fillRect(left, top, wide, tall);
    }
    if (wide > 3 && !continues(spans, each)) {
      pen.fillStyle = colours.paper;
      pen.fillRect(left - 0.7, top, 1.4, tall);
    }
    if (spans.lost[each]) {
      pen.globalAlpha = 1;
      pen.fillStyle = colours.lost;
      pen.fillRect(right - 2.2, top - 1, 2.6, tall + 2);
    }
  }
  pen.globalAlpha = 1;
}

function drawNumbers(pen, colours, area, cell, seen, x) {
  // The number of each request where its stay in a slot has room for it.
  if (area.tall < 11) return;
  const { spans, trace } = cell;
  pen.textAlign = "center";
  for (let place = 0; place < seen.length;) {
    const first = seen[place];
    let last = first;
    for (place++; place < seen.length && continues(spans, seen[place]); place++) last = seen[place];
    const left = Math.max(x(spans.start[first]), area.left), right = Math.min(x(spans.end[last]), area.left + area.width);
    const text = String(trace.row[spans.place[first]]);
    const wide = pen.measureText(text).width;
    if (right - left < wide + 10) continue;
    const middle = (left + right) / 2, y = area.top + spans.slot[first] * area.tall + (area.tall - 3) / 2;
    pen.globalAlpha = 0.82;
    pen.fillStyle = colours.paper;
    pen.fillRect(middle - wide / 2 - 3, y - 6, wide + 6, 12);
    pen.globalAlpha = 1;
    pen.fillStyle = colours.ink;
    pen.fillText(text, middle, y + 0.5);
  }
}

function drawPinned(pen, colours, area, cell, pinned, x) {
  // All stays of a request, and how long it waited for the first of them.
  const { spans, requests } = cell;
  const tall = barHeight(area);
  pen.strokeStyle = pen.fillStyle = colours.pin;
  pen.lineWidth = 2.4;
  let first = -1;
  for (let each = 0; each < spans.count; each++) {
    if (spans.place[each] !== pinned) continue;
    if (first < 0 || spans.start[each] < spans.start[first]) first = each;
    let last = each;
    while (last + 1 < spans.count && continues(spans, last + 1)) last++;
    const left = x(spans.start[each]);
    pen.strokeRect(left, area.top + spans.slot[each] * area.tall, Math.max(x(spans.end[last]) - left, 1.5), tall);
    if (spans.start[each] < spans.start[first]) first = each;
    each = last;
  }
  const index = requests.at[pinned];
  if (first < 0 || index < 0) return;
  const y = area.top + spans.slot[first] * area.tall + tall / 2, from = x(requests.due[index]), to = x(spans.start[first]);
  if (!(to - from > 1)) return;
  pen.setLineDash([5, 3]);
  pen.beginPath();
  pen.moveTo(from, y);
  pen.lineTo(to, y);
  pen.stroke();
  pen.setLineDash([]);
  pen.beginPath();
  pen.arc(from, y, Math.min(4, tall / 2), 0, 7);
  pen.fill();
}

function drawDensity(pen, colours, area, cell, view) {
  // Too many bars to be told apart: of all slots, how many did what.
  const { spans } = cell;
  const columns = Math.max(1, Math.floor(area.width / 2)), each = (view.to - view.from) / columns;
  const layers = [["prefill", colours.prefill], ["decode", colours.decode], ["paused", colours.paused], ["padded", colours.padded]];
  const seconds = Object.fromEntries(layers.map(([name]) => [name, new Float64Array(columns + 1)]));
  const add = (values, from, to, share) => {
    const begin = Math.max((from - view.from) / each, 0), end = Math.min((to - view.from) / each, columns);
    for (let column = Math.floor(begin); column < end; column++) values[column] += share * (Math.min(column + 1, end) - Math.max(column, begin));
  };
  for (let place = 0; place < spans.count; place++) {
    if (!(spans.end[place] > view.from && spans.start[place] < view.to)) continue;
    const own = spans.kind[place] < 2 ? ownShare(spans, place) : 1;
    add(seconds[["prefill", "decode", "paused", "padded"][spans.kind[place]]], spans.start[place], spans.end[place], own);
    if (own < 1) add(seconds.padded, spans.start[place], spans.end[place], 1 - own);
  }
  const full = cell.entry.slots ?? area.rows;
  const tall = area.bottom - area.top;
  pen.fillStyle = colours.idle;
  pen.fillRect(area.left, area.top, area.width, tall);
  for (let column = 0; column < columns; column++) {
    let ground = area.bottom;
    for (const [name, colour] of layers) {
      const height = (seconds[name][column] / full) * tall;
      pen.fillStyle = colour;
      pen.fillRect(area.left + (column * area.width) / columns, ground - height, area.width / columns + 0.3, height);
      ground -= height;
    }
  }
}

function drawMissing(pen, colours, area, cell, view, x) {
  // The seconds that a page does not hold of a large replay.
  if (!cell.entry.kept) return;
  const [from, to] = cell.entry.kept;
  for (const [begin, end] of [[view.from, Math.min(from, view.to)], [Math.max(to, view.from), view.to]]) {
    if (!(end > begin)) continue;
    pen.fillStyle = colours.paper;
    pen.fillRect(x(begin), 0, x(end) - x(begin), area.bottom);
    pen.fillStyle = colours.faint;
    pen.textAlign = "center";
    if (x(end) - x(begin) > 100) pen.fillText("not in this page", (x(begin) + x(end)) / 2, area.top + 10);
  }
}

function drawSlotNames(pen, colours, area) {
  pen.fillStyle = colours.faint;
  pen.textAlign = "right";
  const every = [1, 2, 4, 8, 16, 32, 64].find((step) => step * area.tall >= 13) ?? 128;
  for (let row = 0; row < area.rows; row++) {
    const y = area.top + row * area.tall + barHeight(area) / 2;
    if (every === 1 || (row + 1) % every === 0) pen.fillText(String(row + 1), area.left - 5, y);
  }
}
