// Who held which slot when, from the columns that explorer_cell.py packs: typed arrays in seconds, by span and by request.
// NaN stands for "did not happen".
function readTrace(packed) {
  const { requests, tick } = packed;
  return {
    ...packed, count: requests.row.length, row: runningSum(requests.row), arrivalTicks: runningSum(requests.arrival),
    user: requests.user.map((place) => (place === null ? null : requests.users[place])),
    priority: requests.priority, prompt: requests.prompt, output: requests.output, tick,
  };
}

function columnOf(packed, name) {
  // A column of one value is packed as that value.
  return Array.isArray(packed[name]) ? packed[name] : new Array(packed.count).fill(packed[name]);
}

function runningSum(differences) {
  let sum = 0;
  return Float64Array.from(differences, (difference) => (sum += difference));
}

function readCell(packed, trace, entry) {
  const spans = readSpans(packed.spans, trace);
  const requests = readRequests(packed.requests, spans, trace);
  return { entry, trace, spans, requests, queue: queueOf(requests), overview: packed.overview, from: packed.span[0], to: packed.span[1] };
}

function readSpans(packed, trace) {
  const { count } = packed;
  const [gap, length, request, kinds, tokens, padding] = ["gap", "length", "request", "kind", "tokens", "padding"].map((name) => columnOf(packed, name));
  const spans = {
    count, slots: packed.counts.length, slot: new Int32Array(count), start: new Float64Array(count), end: new Float64Array(count),
    startTicks: new Float64Array(count), endTicks: new Float64Array(count), place: new Int32Array(count), kind: new Uint8Array(count),
    lost: new Uint8Array(count), second: new Uint8Array(count), tokens: new Float64Array(count), padding: new Float64Array(count),
    first: new Int32Array(packed.counts.length + 1), // by slot: where its spans begin
  };
  let at = 0, place = 0;
  packed.counts.forEach((held, slot) => {
    let ended = 0;
    spans.first[slot] = at;
    for (const last = at + held; at < last; at++) {
      place += request[at];
      spans.slot[at] = slot;
      spans.place[at] = place;
      spans.startTicks[at] = ended + gap[at];
      ended = spans.endTicks[at] = spans.startTicks[at] + length[at];
      spans.start[at] = spans.startTicks[at] * trace.tick;
      spans.end[at] = ended * trace.tick;
      spans.kind[at] = kinds[at] % 4;
      spans.lost[at] = kinds[at] >> 2;
      const guessed = [trace.prompt[place], trace.output[place] - 1, 0, 0][spans.kind[at]];
      spans.tokens[at] = tokens[at] + guessed;
      spans.padding[at] = padding[at];
      const before = at > spans.first[slot] ? at - 1 : -1;
      spans.second[at] = before < 0 ? 0 : spans.place[before] === place ? spans.second[before] : 1 - spans.second[before];
    }
  });
  spans.first[packed.counts.length] = at;
  return spans;
}

function readRequests(packed, spans, trace) {
  const places = packed.place === null ? Float64Array.from({ length: trace.count }, (_, place) => place) : runningSum(packed.place);
  const { count } = packed;
  const names = ["due", "admitted", "first_token", "last_token", "finished", "ended", "status", "generated", "evictions", "swaps"];
  const columns = Object.fromEntries(names.map((name) => [name, columnOf(packed, name)]));
  const at = new Int32Array(trace.count).fill(-1);
  places.forEach((place, index) => { at[place] = index; });
  const held = heldTimes(spans, at, count);
  const stamp = (values, guess, index) => (values[index] === null ? NaN : (values[index] + guess) * trace.tick);
  const requests = {
    count, at, place: Int32Array.from(places), status: columns.status.map((place) => trace.statuses[place] ?? "unknown"),
    evictions: columns.evictions, swaps: columns.swaps, reasons: new Map(packed.reasons),
    generated: columns.generated.map((value, index) => (value === null ? null : value + trace.output[places[index]])),
  };
  const guesses = { admitted: "begun", first_token: "read", last_token: "written", finished: "left", ended: "left" };
  for (const name of ["due", ...Object.keys(guesses)]) requests[name] = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const arrival = trace.arrivalTicks[places[index]];
    requests.due[index] = stamp(columns.due, arrival, index);
    const due = columns.due[index] === null ? arrival : arrival + columns.due[index];
    for (const [name, guess] of Object.entries(guesses)) {
      const known = held[guess][index];
      requests[name][index] = stamp(columns[name], Number.isNaN(known) ? due : known, index);
    }
  }
  return requests;
}

function heldTimes(spans, at, count) {
  const held = Object.fromEntries(["begun", "read", "written", "left"].map((name) => [name, new Float64Array(count).fill(NaN)]));
  const least = (values, index, value) => { if (!(values[index] <= value)) values[index] = value; };
  const most = (values, index, value) => { if (!(values[index] >= value)) values[index] = value; };
  for (let each = 0; each < spans.count; each++) {
    const index = at[spans.place[each]];
    if (index < 0) continue;
    least(held.begun, index, spans.startTicks[each]);
    most(held.left, index, spans.endTicks[each]);
    if (spans.kind[each] === 0) least(held.read, index, spans.endTicks[each]);
    if (spans.kind[each] === 1) most(held.written, index, spans.endTicks[each]);
  }
  return held;
}

function queueOf(requests) {
  // How many had become due and were not yet admitted, at each instant at which that changed.
  const changes = [];
  for (let index = 0; index < requests.count; index++) {
    const left = leftQueue(requests, index);
    if (Number.isNaN(left) || Number.isNaN(requests.due[index])) continue;
    changes.push([requests.due[index], 1], [left, -1]);
  }
  changes.sort((one, other) => one[0] - other[0]);
  const times = [], waiting = [];
  let now = 0;
  changes.forEach(([time, change], place) => {
    now += change;
    if (place + 1 === changes.length || changes[place + 1][0] > time) {
      times.push(time);
      waiting.push(now);
    }
  });
  return { times, waiting };
}

function leftQueue(requests, index) {
  return Number.isNaN(requests.admitted[index]) ? requests.ended[index] : requests.admitted[index];
}

function spansWithin(spans, from, to) {
  const found = [];
  for (let each = 0; each < spans.count; each++) if (spans.end[each] > from && spans.start[each] < to) found.push(each);
  return found;
}

function continues(spans, each) {
  // Whether a span goes on with the stay of the one before it: the same request in the same slot, which it had not lost.
  return each > spans.first[spans.slot[each]] && spans.place[each - 1] === spans.place[each] && !spans.lost[each - 1];
}

function runningAt(spans, time) {
  // Residents, between two steps too.
  let running = 0;
  for (let each = 0; each < spans.count; each++) {
    const end = each + 1 < spans.count && continues(spans, each + 1) ? spans.start[each + 1] : spans.end[each];
    if (spans.start[each] <= time && time < end) running++;
  }
  return running;
}

function ownShare(spans, each) {
  const all = spans.tokens[each] + spans.padding[each];
  return all > 0 ? spans.tokens[each] / all : 1;
}

function slotShares(cell, slots, from, to) {
  // How slot time was spent, in whole percent that add up to 100.
  const { spans } = cell;
  let useful = 0, paused = 0, held = 0;
  for (let each = 0; each < spans.count; each++) {
    const seconds = Math.min(spans.end[each], to) - Math.max(spans.start[each], from);
    if (!(seconds > 0)) continue;
    held += seconds;
    if (spans.kind[each] < 2) useful += seconds * ownShare(spans, each);
    if (spans.kind[each] === 2) paused += seconds;
  }
  const total = slots * (to - from);
  const parts = [["of slot time useful", useful], ["padding", held - useful - paused], ["paused", paused], ["idle", total - held]];
  const exact = parts.map(([, seconds]) => Math.max(seconds / total, 0) * 100);
  const whole = exact.map((value) => Math.floor(value + 1e-9));
  const order = exact.map((_, place) => place).sort((one, other) => {
    const rest = (place) => Number((whole[place] - exact[place]).toFixed(6));
    return rest(one) - rest(other) || exact[other] - exact[one];
  });
  const lacking = Math.max(100 - whole.reduce((sum, value) => sum + value, 0), 0);
  for (const place of order.slice(0, lacking)) whole[place] += 1;
  return parts.map(([name], place) => [name, whole[place]]).filter(([name, share]) => name !== "paused" || share);
}

function meanQueue(cell, from, to) {
  const { times, waiting } = cell.queue;
  let sum = 0;
  for (let place = 0; place < times.length; place++) {
    const end = place + 1 < times.length ? times[place + 1] : to;
    const seconds = Math.min(end, to) - Math.max(times[place], from);
    if (seconds > 0) sum += seconds * waiting[place];
  }
  return sum / (to - from);
}

function momentOf(cell, time) {
  // What the engine did at an instant; null outside the replay.
  const { overview, entry } = cell;
  if (time < cell.from || time > cell.to) return null;
  const bins = overview.running.length;
  const bin = Math.min(Math.floor(((time - cell.from) / (cell.to - cell.from)) * bins), bins - 1);
  const moment = {
    running: Math.round(overview.running[bin] / 10), waiting: Math.round(overview.waiting[bin] / 10),
    kv: overview.kv?.[bin] ?? null, bound: overview.bound[bin] === null ? null : cell.trace.bounds[overview.bound[bin]],
  };
  if (entry.kept && (time < entry.kept[0] || time > entry.kept[1])) return moment;
  if (cell.spans.count) moment.running = runningAt(cell.spans, time);
  moment.waiting = 0;
  for (let index = 0; index < cell.requests.count; index++) {
    if (cell.requests.due[index] <= time && time < leftQueue(cell.requests, index)) moment.waiting++;
  }
  return moment;
}
