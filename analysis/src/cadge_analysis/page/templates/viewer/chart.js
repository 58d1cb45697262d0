// SPDX-License-Identifier: BSD-3-Clause
// One measure against one parameter, a series a layer: numbers of the file with their intervals, and nothing computed.

const BOX = { width: 760, height: 400, left: 66, right: 16, top: 14, bottom: 46 };
const DRAWN_FIRST = 8;
const seriesOf = (table, row) => {
  const [layer, shims, settings] = ["layer", "shims", "settings"].map((one) => exact(table.value(row, one)));
  const twin = table.value(row, "twin") === true ? ", second series" : "";
  const label = [layer, ...shims.split("+").filter(Boolean)].join(" + ") + (settings ? " (" + settings.replaceAll(" ", ", ") + ")" : "") + twin;
  return { label, layer, shims, settings, plain: !shims && !settings && !twin };
};

/** The values of a column in some rows, each once, in order. */
const valuesOf = (table, rows, column) => [...new Set(rows.map((row) => table.value(row, column)))].sort(compared);

/** What can be drawn of some rows, along which parameters. */
const axesOf = (table, rows) => table.columns.filter((one) => one.parameter && one.numeric &&
  rows.some((row) => isNumber(table.value(row, one.name)))).sort((a, b) =>
  (valuesOf(table, rows, b.name).length > 1) - (valuesOf(table, rows, a.name).length > 1) || isSize(b.name) - isSize(a.name));
const measuresOf = (table, rows) => table.columns.filter((one) => one.numeric && !one.parameter && !one.limit &&
  !["round", "endpoint", "line"].includes(one.name) && rows.some((row) => isNumber(table.value(row, one.name))));
const likely = (measures) => measures.find((one) => one.low) ?? measures.find((one) => one.name.includes("p50")) ??
  measures.find((one) => unitOf(one.name)) ?? measures[0];

/** Tell whether a column has one value wherever another one has: a reply as long as its request. */
function follows(table, rows, column, other) {
  const found = new Map();
  return rows.every((row) => {
    const [key, value] = [table.value(row, other), table.value(row, column)];
    if (!found.has(key)) found.set(key, value);
    return found.get(key) === value;
  });
}

/** Narrow rows to one case by the reader's choices; what is not chosen takes its first value. */
function caseOf(table, chosen) {
  let rows = table.rows;
  const asked = [];
  const ask = (column, first) => {
    const values = valuesOf(table, rows, column).sort((a, b) => (b === first) - (a === first));
    if (values.length < 2) return;
    const pick = values.map(exact).includes(chosen[column]) ? chosen[column] : exact(values[0]);
    asked.push({ column, values, pick });
    rows = rows.filter((row) => exact(table.value(row, column)) === pick);
  };
  for (const column of ["kind", "pattern", "quantity", "place", "wait"]) if (table.at.has(column)) ask(column, "layer");
  const axes = axesOf(table, rows);
  const axis = axes.find((one) => one.name === chosen.axis) ?? axes[0];
  for (const one of table.columns) if (one.parameter && axis && one !== axis && !follows(table, rows, one.name, axis.name)) ask(one.name);
  const measures = measuresOf(table, rows);
  const measure = measures.find((one) => one.name === chosen.measure) ?? likely(measures);
  return { rows, asked, axes, axis, measures, measure };
}

/** Ticks at 1, 2 and 5 of each decade, at 1 alone where that is many. */
function decades(low, high) {
  const found = (steps) => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
      for (const step of steps) if (step * 10 ** e >= low && step * 10 ** e <= high) ticks.push(step * 10 ** e);
    }
    return ticks;
  };
  const ticks = found([1, 2, 5]);
  return ticks.length > 9 ? found([1]) : ticks;
}

function evenly(low, high) {
  const raw = (high - low) / 5 || 1;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * base).find((one) => one >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) ticks.push(at);
  return ticks;
}

/** An axis: where values lie between 0 and 1, and its ticks; logarithmic where all are positive. */
function axisOver(values, log) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (log) {
    const [low, high] = [least / 1.18, most * 1.18];
    return { share: (value) => Math.log(value / low) / Math.log(high / low), ticks: decades(low, high), log };
  }
  const [low, high] = [Math.min(0, least * 1.06), Math.max(0, most * 1.06) || 1];
  return { share: (value) => (value - low) / (high - low), ticks: evenly(low, high), log };
}

/** Where a parameter's values lie: at their binary logarithm, zero one and a half doublings before the rest. */
function along(values) {
  const positive = values.filter((one) => one > 0);
  if (values.some((one) => one < 0) || (positive.length && Math.max(...positive) / Math.min(...positive) < 8 && values.includes(0))) {
    return { ...axisOver(values, false), log: false };
  }
  const least = positive.length ? Math.log2(Math.min(...positive)) : 0;
  const place = (value) => (value > 0 ? Math.log2(value) : least - 1.5);
  const places = values.map(place);
  const [low, high] = [Math.min(...places) - 0.4, Math.max(...places) + 0.4];
  return { share: (value) => (place(value) - low) / (high - low), log: true };
}

/** The points of a case: {series, x, value, low, high}, of rows that count. */
function pointsOf(table, { rows, axis, measure }) {
  const left = { state: 0, empty: 0 };
  const points = [];
  for (const row of rows) {
    const state = table.state(row);
    const [x, value] = [table.value(row, axis.name), table.value(row, measure.name)];
    if (state !== null && state !== "valid" && state !== "partly") left.state += 1;
    else if (!isNumber(x) || !isNumber(value)) left.empty += 1;
    else points.push({ series: seriesOf(table, row), x, value, low: measure.low && table.value(row, measure.low), high: measure.high && table.value(row, measure.high) });
  }
  return { points, left };
}

/** The picture of some points. */
function picture(points, looks, { axis, measure }, title) {
  const { width, height, left, right, top, bottom } = BOX;
  const numbers = points.flatMap((one) => [one.value, one.low, one.high]).filter((one) => isNumber(one)).map(Number);
  const [unit, divisor] = measure.step ?? ["", 1];
  const up = axisOver(numbers.map((one) => one / divisor), numbers.every((one) => one > 0));
  const xs = [...new Set(points.map((one) => Number(one.x)))].sort((a, b) => a - b);
  const across = along(xs);
  const X = (value) => left + across.share(Number(value)) * (width - left - right);
  const Y = (value) => top + (1 - up.share(Number(value) / divisor)) * (height - top - bottom);
  const text = (x, y, content, anchor) => drawn("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, content);
  const svg = drawn("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", role: "img", "aria-labelledby": "chart-title chart-desc" });
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  svg.append(drawn("title", { id: "chart-title" }, title), drawn("desc", { id: "chart-desc" },
    measure.name + " against " + axis.name + " of " + countOf(new Set(points.map((one) => one.series.label)).size, "series", "series") + ", from " +
    rounded(least / divisor) + " to " + rounded(most / divisor) + " " + unit + ", " + (up.log ? "logarithmic" : "linear") + ". The table below has every number."));
  for (const tick of up.ticks) {
    const y = Y(tick * divisor);
    svg.append(drawn("line", { x1: left, x2: width - right, y1: y.toFixed(1), y2: y.toFixed(1), class: "grid" }), text(left - 7, y + 4, round(tick), "end"));
  }
  let last = -Infinity;
  for (const x of xs) {
    const label = isSize(axis.name) ? size(x) : grouped(String(x));
    const room = label.length * 3.4 + 4;
    svg.append(drawn("line", { x1: X(x).toFixed(1), x2: X(x).toFixed(1), y1: height - bottom, y2: height - bottom + 4, class: "tick" }));
    if (X(x) - room < last) continue;
    svg.append(text(X(x), height - bottom + 18, label, "middle"));
    last = X(x) + room;
  }
  const about = drawn("text", { transform: "translate(13 " + (top + height - bottom) / 2 + ") rotate(-90)", "text-anchor": "middle" }, measure.name + (unit ? ", " + unit : ""));
  svg.append(about, text((left + width - right) / 2, height - 8, axis.name, "middle"));
  for (const [label, look] of looks) {
    const own = points.filter((one) => one.series.label === label).sort((a, b) => Number(a.x) - Number(b.x));
    const style = "stroke:var(--s" + look.slot + ")";
    const group = drawn("g", { class: "series" });
    if (new Set(own.map((one) => one.x)).size === own.length && own.length > 1) {
      group.append(drawn("path", { d: "M" + own.map((one) => X(one.x).toFixed(1) + "," + Y(one.value).toFixed(1)).join("L"), class: "line", style, "stroke-dasharray": dashOf(look) }));
    }
    for (const one of own) {
      if (isNumber(one.low) && isNumber(one.high)) {
        const [x, a, b] = [X(one.x), Y(one.low), Y(one.high)].map((each) => each.toFixed(1));
        group.append(drawn("path", { d: "M" + x + "," + a + "V" + b + "M" + (x - 3) + "," + a + "h6M" + (x - 3) + "," + b + "h6", class: "interval", style }));
      }
      group.append(markOf(look, X(one.x), Y(one.value), 4));
    }
    svg.append(group);
  }
  return svg;
}

/** The key of a series: its mark and its name, and whether it is drawn. */
function keyOf_(label, look, checked, change) {
  const box = make("input", { type: "checkbox", checked });
  box.addEventListener("change", () => change(box.checked));
  const mark = drawn("svg", { width: 26, height: 12, class: "mk", "aria-hidden": "true", viewBox: "0 0 26 12" },
    drawn("path", { d: "M0,6H26", class: "line", style: "stroke:var(--s" + look.slot + ")", "stroke-dasharray": dashOf(look) }), markOf(look, 13, 6, 4));
  return make("label", {}, box, mark, name(label));
}

/** Every number that is drawn. */
function numbersOf(points, { axis, measure }) {
  const heads = ["series", axis.name, measure.name, ...(measure.low ? [measure.low, measure.high] : [])];
  const element = make("table", { className: "plain numbers" });
  element.dataset.heads = "few";
  element.append(make("thead", {}, make("tr", {}, ...heads.map((one, at) => make("th", { scope: "col", textContent: one, className: at ? "num" : "" })))));
  heads.forEach((one, at) => element.style.setProperty("--h" + (at + 1), '"' + one.replace(/[^\w ]/g, "") + '"'));
  element.append(make("tbody", {}, ...points.map((one) => make("tr", {}, make("th", { scope: "row" }, name(one.series.label)),
    ...[one.x, one.value, ...(measure.low ? [one.low, one.high] : [])].map((value) => make("td", { className: "num", textContent: exact(value) }))))));
  return element;
}

/** The section of a table's chart; `chosen` keeps the reader's choices. */
function chartOf(table, chosen, note, again) {
  const found = table.rows.length ? caseOf(table, chosen) : {};
  if (!found.axis || !found.measure) {
    return [make("p", { textContent: "Nothing to draw: this table has no number along a parameter of a pattern." })];
  }
  const { asked, axes, axis, measures, measure } = found;
  const set = (key) => (value) => { chosen[key] = value; again(key); };
  const controls = make("div", { className: "choices" },
    choice("Measure", measures.map((one) => [one.name, one.name]), measure.name, set("measure")),
    choice("Against", axes.map((one) => [one.name, one.name]), axis.name, set("axis")),
    ...asked.map(({ column, values, pick }) => choice(column, values.map((one) => [exact(one),
      (KNOWN.words[column] ?? {})[one] ?? (one === null ? "none" : isSize(column) && isNumber(one) ? size(one) : exact(one))]), pick, set(column))));
  const { points, left } = pointsOf(table, found);
  const kind = table.value(found.rows[0], "kind");
  const several = new Map(table.rows.filter((row) => table.value(row, "kind") === kind).map((row) => seriesOf(table, row)).map((one) => [one.label, one]));
  const looks = looksOf(several.values());
  const labels = [...new Set(points.map((one) => one.series.label))].sort();
  chosen.hidden ??= new Map();
  const isDrawn = (label, at) => chosen.hidden.get(label) ?? at < DRAWN_FIRST;
  const title = measure.name + " against " + axis.name + [...asked.map((one) => ", " + one.column + " " + ((KNOWN.words[one.column] ?? {})[one.pick] ?? one.pick))].join("");
  const keys = make("fieldset", { className: "series-keys" }, make("legend", { textContent: "Series, by name" }),
    ...labels.map((label, at) => keyOf_(label, looks.get(label), isDrawn(label, at), (on) => { chosen.hidden.set(label, on); again("key:" + at); })));
  const shown = new Set(labels.filter(isDrawn));
  const of = points.filter((one) => shown.has(one.series.label));
  const said = [
    countOf(of.length, "point") + " of " + countOf(shown.size, "series", "series") + (shown.size < labels.length ? ", of " + labels.length + " in the file" : "") + ".",
    measure.ends ? "Bars: " + measure.ends + "." : "The file has no interval of this measure.",
    left.state ? countOf(left.state, "row") + " not drawn, as what was measured does not count." : "",
    left.empty ? countOf(left.empty, "row") + " without this number." : "", note,
  ].filter(Boolean).join(" ");
  const figure = make("figure", { className: "fig", id: "figure" }, make("h3", { textContent: title }),
    of.length ? scrolled("Chart: " + title, picture(of, [...looks].filter(([label]) => shown.has(label)), found, title)) : make("p", { textContent: "No series with a number is chosen." }),
    make("figcaption", { textContent: said }), keys);
  if (of.length) {
    figure.append(make("details", { open: Boolean(chosen.open) }, make("summary", { textContent: "Numbers of this figure" }), scrolled("Numbers: " + title, numbersOf(of, found))));
    figure.lastChild.addEventListener("toggle", (event) => { chosen.open = event.target.open; });
  }
  return [controls, figure];
}
