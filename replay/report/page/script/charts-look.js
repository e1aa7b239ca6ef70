// How a chart looks now: in light or dark, with the policies and modes alone that the reader has not put aside.
// Of a trace, `meta` says: policy, setting: whose it is. valid: or grey. filling: of its marker, as Plotly's suffix of a
// symbol ("-open"). faint. plain: it has colours of its own. points: the setting of each point. all_settings: it is shown
// where all of these are. invalid_points: which are grey. policies, settings: rows and columns of a heat map, and
// colours: "merit" from worst to best, or "none". Of a layout: rows: "policies", its rows are policies, each so many
// pixels (row) under or above an axis (head); columns: "settings".
const UPRIGHT = 60; // pixels more for labels that stand, on a phone
const axisName = /^[xy]axis\d*$/;
const merits = { light: ["#f2a765", "#ffffff", "#7db4e0"], dark: ["#8a4b12", "#20252c", "#1f5f99"] };

function themeName() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function keptOf(axis, shownNames) {
  // A category axis with those of its names alone that are shown.
  const kept = axis.tickvals.map((name, place) => [name, axis.ticktext[place]]).filter(([name]) => shownNames(name));
  return { ...axis, tickvals: kept.map(([name]) => name), ticktext: kept.map(([, text]) => text) };
}

function withRows(layout, height) {
  const { rows, columns, row, head } = layout.meta ?? {};
  const changed = { ...layout };
  let upright = 0;
  if (columns) {
    changed.xaxis = keptOf(layout.xaxis, (name) => isShown(name, null));
    if (changed.xaxis.tickvals.length > 3 && innerWidth < 640) {
      changed.xaxis = { ...changed.xaxis, tickangle: -90 };
      upright = UPRIGHT;
    }
  }
  if (rows) {
    changed.yaxis = keptOf(layout.yaxis, (name) => isShown(null, name));
    const count = changed.yaxis.tickvals.length;
    changed.yaxis.categoryarray = changed.yaxis.tickvals;
    changed.yaxis.range = [count - 0.5, -0.5];
    changed.yaxis.autorange = false;
    changed.height = head + upright + row * Math.max(count, 1);
  }
  return { height, ...changed };
}

function themedLayout(layout, height) {
  const ink = css("--ink");
  const line = { gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true, exponentformat: "none", separatethousands: true };
  const laidOut = withRows(layout, height);
  const themed = {
    ...laidOut, autosize: true, showlegend: false, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    margin: { l: 8, r: 12, t: 8, b: 8, ...layout.margin }, font: { color: ink, size: 12 }, hovermode: layout.hovermode ?? "closest",
    modebar: { bgcolor: "transparent", color: css("--faint"), activecolor: css("--accent") },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink }, align: "left", namelength: -1 },
  };
  for (const name of Object.keys(laidOut).filter((key) => axisName.test(key))) {
    themed[name] = { ...line, ...laidOut[name], title: { standoff: 6, font: { size: 12 }, ...laidOut[name].title } };
  }
  themed.xaxis ??= line;
  themed.yaxis ??= line;
  return themed;
}

function isTraceShown({ policy, setting, all_settings: all }) {
  return isShown(setting, policy) && (all ?? []).every((each) => isShown(each, null));
}

function withPoints(trace, kept) {
  // Those points alone whose places are `kept`.
  const changed = { ...trace };
  for (const name of ["x", "y", "text", "customdata"]) {
    if (Array.isArray(trace[name])) changed[name] = trace[name].filter((_, place) => kept[place]);
  }
  return changed;
}

function heatMap(trace) {
  const rows = trace.meta.policies.map((policy) => isShown(null, policy));
  const columns = trace.meta.settings.map((setting) => isShown(setting, null));
  const changed = { ...trace, y: trace.y.filter((_, place) => rows[place]), x: trace.x.filter((_, place) => columns[place]) };
  for (const name of ["z", "text", "hovertext"]) {
    changed[name] = trace[name].filter((_, place) => rows[place]).map((row) => row.filter((_, place) => columns[place]));
  }
  const [worst, middle, best] = merits[themeName()];
  const plain = css("--line");
  changed.colorscale = trace.meta.colours === "merit" ? [[0, worst], [0.5, middle], [1, best]] : [[0, plain], [1, plain]];
  changed.textfont = { color: css("--ink") };
  return changed;
}

function themedTrace(trace) {
  // The policy's colour and marker, unless the trace has its own; hidden where its policy or mode is.
  const meta = trace.meta ?? {};
  const visible = isTraceShown(meta);
  if (trace.type === "heatmap") return heatMap(trace);
  if (!meta.policy || meta.plain) {
    return trace.line?.color ? { ...trace, visible, line: { ...trace.line, color: shade(trace.line.color) } } : { ...trace, visible };
  }
  const { colour, symbol, dash } = look(meta.policy, meta.valid !== false);
  const filling = meta.filling ?? "";
  const edge = filling ? { width: 1.8 } : { width: 0.8, color: css("--paper") };
  const colours = meta.invalid_points?.map((invalid) => (invalid ? grey : colour)) ?? colour;
  const themed = {
    ...trace, visible,
    opacity: meta.faint ? 0.6 : trace.opacity ?? 1,
    line: { width: widthOf(meta.policy), dash, ...trace.line, color: colour },
    marker: { size: 8, ...trace.marker, symbol: trace.marker?.symbol ?? symbol + filling, color: colours },
    textfont: { color: colour, size: 11 },
  };
  themed.marker.line = { ...edge, ...trace.marker?.line };
  if (trace.marker?.symbol?.endsWith("-thin")) themed.marker.line.color = colour; // all that is seen of it
  for (const name of ["error_x", "error_y"]) if (trace[name]) themed[name] = { ...trace[name], color: colour, thickness: 1.4 };
  return meta.points ? withPoints(themed, meta.points.map((setting) => isShown(setting, null))) : themed;
}

function widthOf(policy) {
  // The first policy's line is the widest, so that another on it does not hide it.
  const names = facts.policies.map((each) => each.name).filter((name) => isShown(null, name));
  return names.length < 2 ? 1.8 : 3.2 - 1.8 * (Math.max(names.indexOf(policy), 0) / (names.length - 1));
}

function isPanelShown(panel) {
  const choosing = panel.data.filter((trace) => trace.meta?.all_settings);
  return isShown(panel.setting, panel.policy) && (!choosing.length || choosing.some((trace) => isTraceShown(trace.meta)));
}
