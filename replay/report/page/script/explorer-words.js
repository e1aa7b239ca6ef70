// Numbers, times and sentences of the explorer.
const boundWords = { gate: "bound by the mode's gate", slots: "bound by slots", blocks: "bound by KV blocks", budget: "bound by the token budget",
  policy: "held back by the policy's own rule", nothing: "nothing refused" };

function threeDigits(value) {
  if (value === null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size > 0 && size < 0.995) return withThousands(value, 2 - Math.floor(Math.log10(size))).replace(/0+$/, "");
  return withThousands(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function duration(seconds) {
  if (seconds === null || Number.isNaN(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size >= 1 || size === 0) return `${threeDigits(seconds)} s`;
  return size >= 1e-4 ? `${threeDigits(seconds * 1e3)} ms` : `${threeDigits(seconds * 1e6)} µs`;
}

function unitOf(length) {
  return length >= 1 ? { name: "s", seconds: 1 } : length >= 1e-3 ? { name: "ms", seconds: 1e-3 } : { name: "µs", seconds: 1e-6 };
}

function decimalsOf(explorer) {
  const length = (explorer.view.to - explorer.view.from) / explorer.unit.seconds;
  return Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(length))));
}

function instant(explorer, seconds) {
  return `${withThousands(seconds / explorer.unit.seconds, decimalsOf(explorer))} ${explorer.unit.name}`;
}

function nameOf(entry) {
  return `${entry.setting}, ${entry.policy}${entry.repeat > 1 ? `, repeat ${entry.repeat}` : ""}`;
}

function letterOf(letter) {
  return element("span", { className: `letter ${letter.toLowerCase()}` }, letter);
}

function statusWords(facts) {
  return facts.status.replace("_", " ") + (facts.reason ? ` (${facts.reason})` : "");
}

function whoIs(trace, place) {
  const parts = [trace.user[place] !== null && `user ${trace.user[place]}`, trace.priority[place] !== null && `priority ${trace.priority[place]}`,
    `${withThousands(trace.prompt[place], 0)} prompt tokens`, `${withThousands(trace.output[place], 0)} output tokens`];
  return parts.filter(Boolean).join(", ");
}

function momentWords(cell, time) {
  const moment = momentOf(cell, time);
  if (!moment) return "not running";
  return [`${moment.running} running`, `${moment.waiting} waiting`, moment.kv !== null && `KV ${moment.kv} %`, moment.bound && boundWords[moment.bound]]
    .filter(Boolean).join(", ");
}
