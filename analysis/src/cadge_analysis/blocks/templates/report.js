// SPDX-License-Identifier: BSD-3-Clause
// What a reader can do with a report: sort, hide layers, take another percentile or baseline in tables, read values off
// a figure, take a table along.
// Nothing depends on it. Names come from data: they are compared and shown as text, never as markup.
"use strict";
(() => {
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};
const button = (text, click, properties = {}) => {
  const node = make("button", { type: "button", ...properties }, text);
  node.addEventListener("click", click);
  return node;
};
const said = make("p", { className: "said" });
said.setAttribute("role", "status");
const say = (text) => { said.textContent = text; };

// ---- what stands in a table ----

const SORTED = "table.full, table.summary, table.asked";
const TAKEN = SORTED + ", table.knees, table.numbers";

/** All text of an element that is read out, its pieces parted by spaces. */
function wordsOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data.trim();
  if (node.nodeType !== Node.ELEMENT_NODE || node.hidden || node.getAttribute("aria-hidden") === "true") return "";
  return [...node.childNodes].map(wordsOf).filter(Boolean).join(" ");
}

/** The number of a cell: the exact one where it has one, else the one that is shown; NaN without. */
function numberOf(cell) {
  if (!cell || cell.classList.contains("none")) return NaN;
  if (cell.dataset.v) return parseFloat(cell.dataset.v);
  return parseFloat(wordsOf(cell).replace(/[\u00a0\u2009\u202f]/g, "").replace("\u2212", "-"));
}

const rowsOf = (table) => (table.tBodies.length ? [...table.tBodies[0].rows] : []);
const headsOf = (table) => (table.tHead ? [...table.tHead.rows[0].cells] : []);
const layerOf = (row) => row.querySelector(':scope > th[scope="row"] .name bdi')?.textContent;

const tableNames = new Map();
const firstOrder = new Map();
for (const table of all(SORTED)) {
  const label = table.closest("[aria-label]")?.getAttribute("aria-label") ?? "table";
  let name = label;
  for (let number = 2; tableNames.has(name); number += 1) name = label + " " + number;
  tableNames.set(name, table);
  firstOrder.set(table, { name, rows: rowsOf(table) });
}

// ---- state: hidden layers, sorted tables, percentile and baseline, in the fragment of the address ----

const hidden = new Set();
const sorts = new Map();
let at = "";
let percentile = "p50";
let base = "";

function fragment() {
  const parts = ["v1"];
  if (hidden.size) parts.push("hide=" + [...hidden].sort().map(encodeURIComponent).join(","));
  if (sorts.size) {
    parts.push("sort=" + [...sorts].map(([name, one]) =>
      [encodeURIComponent(name), one.column, one.down ? "down" : "up"].join(":")).join(","));
  }
  if (percentile !== "p50") parts.push("pct=" + percentile);
  if (base) parts.push("base=" + encodeURIComponent(base));
  if (parts.length > 1 && at) parts.push("at=" + encodeURIComponent(at));
  return parts.length > 1 ? "#" + parts.join("&") : at ? "#" + encodeURIComponent(at) : "";
}

function keep() {
  // A page inside a frame without an origin may not change its address; all else works there.
  try { history.replaceState(history.state, "", fragment() || location.pathname + location.search); } catch { /* so it stays */ }
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return ""; }
}

/** Take over what an address says; of what this report does not have, nothing. */
function restore() {
  const text = location.hash.slice(1);
  const [version, ...parts] = text.split("&");
  if (version !== "v1") {
    at = decoded(text);
    if (hidden.size || sorts.size || base || percentile !== "p50") keep();
    return;
  }
  const given = new Map(parts.map((part) => {
    const cut = part.indexOf("=");
    return cut < 0 ? [part, ""] : [part.slice(0, cut), part.slice(cut + 1)];
  }));
  hidden.clear();
  for (const one of (given.get("hide") ?? "").split(",").map(decoded)) if (layers.has(one)) hidden.add(one);
  for (const name of [...sorts.keys()]) sort(tableNames.get(name), null);
  for (const one of (given.get("sort") ?? "").split(",").filter(Boolean)) {
    const [name, column, way] = one.split(":");
    const table = tableNames.get(decoded(name));
    if (table && headsOf(table)[+column]) sort(table, { column: +column, down: way === "down" });
  }
  const before = [percentile, base];
  percentile = Object.hasOwn(percentiles, given.get("pct") ?? "") ? given.get("pct") : "p50";
  base = bases.includes(decoded(given.get("base") ?? "")) ? decoded(given.get("base")) : "";
  at = decoded(given.get("at") ?? "");
  if (percentile !== before[0]) showPercentile();
  if (base !== before[1]) showBase();
  document.dispatchEvent(new Event("choice"));
  showLayers();
  if (at) document.getElementById(at)?.scrollIntoView();
}

// ---- sort ----

/** Sort a table by a column; without an order as it was made. What has no number comes last, either way. */
function sort(table, order) {
  const { name, rows } = firstOrder.get(table);
  const sorted = [...rows];
  if (order) {
    const cells = new Map(rows.map((row) => [row, row.cells[order.column]]));
    const numbers = new Map(rows.map((row) => [row, numberOf(cells.get(row))]));
    const byWords = rows.every((row) => Number.isNaN(numbers.get(row))) || order.column === 0;
    const texts = new Map(rows.map((row) => [row, wordsOf(cells.get(row))]));
    const sign = order.down ? -1 : 1;
    sorted.sort((a, b) => {
      if (byWords) return sign * (texts.get(a) < texts.get(b) ? -1 : +(texts.get(a) > texts.get(b)));
      const [one, other] = [numbers.get(a), numbers.get(b)];
      if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
      return sign * (one - other);
    });
    sorts.set(name, order);
  } else {
    sorts.delete(name);
  }
  table.tBodies[0].append(...sorted);
  table.classList.toggle("sorted", Boolean(order));
  if (table.matches(".asked")) for (const made of all("small", headsOf(table)[0])) made.hidden = Boolean(order);
  headsOf(table).forEach((head, column) => {
    if (order?.column === column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

/** What a press on a column's head does: up, then down, then as it was. */
function press(table, column) {
  const now = sorts.get(firstOrder.get(table).name);
  const next = now?.column !== column ? { column, down: false } : now.down ? null : { column, down: true };
  sort(table, next);
  say(next ? "Sorted by " + wordsOf(headsOf(table)[column]) + (next.down ? ", descending" : ", ascending") : "Order as it was");
  keep();
}

// ---- take a table along ----

const visible = (table) => rowsOf(table).filter((row) => !row.hidden);
const shownColumns = (table) => headsOf(table).map((head, column) => [head, column]).filter(([head]) => !head.hidden);
const titleOf = (table) => wordsOf(table.caption ?? make("i")) ||
  (table.closest("[aria-label]")?.getAttribute("aria-label") ?? "table");

function asMarkdown(table) {
  const columns = shownColumns(table);
  const line = (texts) => "| " + texts.map((text) => text.replace(/[\\|`*_<>[\]]/g, "\\$&").replace(/\s+/g, " ")).join(" | ") + " |\n";
  return line(columns.map(([head]) => wordsOf(head))) +
    "|" + columns.map(([, column]) => (column ? "---:|" : "---|")).join("") + "\n" +
    visible(table).map((row) => line(columns.map(([, column]) => wordsOf(row.cells[column])))).join("");
}

/** As RFC 4180; exact numbers follow the text of their column. What a spreadsheet would run is made text. */
function asCsv(table) {
  const field = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  const rows = visible(table);
  const exact = (row, column) => (row.cells[column].dataset.v ?? "").split(" ").filter(Boolean);
  const columns = shownColumns(table).map(([head, column]) =>
    [wordsOf(head), column, Math.max(0, ...rows.map((row) => exact(row, column).length))]);
  const lines = [columns.flatMap(([name, , many]) =>
    [name, ...["exact", "exact low", "exact high"].slice(0, many).map((what) => name + ", " + what)])];
  for (const row of rows) {
    lines.push(columns.flatMap(([, column, many]) => {
      const found = exact(row, column);
      return [wordsOf(row.cells[column]), ...Array.from({ length: Math.min(many, 3) }, (_, n) => found[n] ?? "")];
    }));
  }
  return lines.map((line) => line.map(field).join(",") + "\r\n").join("");
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text, className: "said" });
    document.body.append(area);
    const before = document.activeElement;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    if (!done) return say("The browser does not let this page copy");
  }
  return say(what + " copied");
}

function download(table) {
  const name = titleOf(table).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
  const link = make("a", { download: name + ".csv" });
  const address = URL.createObjectURL(new Blob([asCsv(table)], { type: "text/csv;charset=utf-8" }));
  link.href = address;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  say("CSV made");
}

/** Give a table its buttons. Those in what is folded get theirs when it opens: a large report has thousands. */
const equipped = new WeakSet();
function equip(table) {
  if (equipped.has(table) || !rowsOf(table).length) return;
  equipped.add(table);
  if (firstOrder.has(table)) {
    table.classList.add("sortable");
    headsOf(table).forEach((head, column) => {
      const inner = button("", () => press(table, column), { className: "by" });
      inner.append(...head.childNodes);
      const way = make("i");
      way.setAttribute("aria-hidden", "true");
      inner.insertBefore(way, inner.querySelector("small"));
      head.append(inner);
      inner.title = "Sort by this column";
    });
  }
  const title = titleOf(table);
  const markdown = button("Copy as Markdown", () => copy(asMarkdown(table), "Table"));
  const csv = button("Download CSV", () => download(table));
  markdown.setAttribute("aria-label", "Copy as Markdown: " + title);
  csv.setAttribute("aria-label", "Download CSV: " + title);
  (table.closest(".scroll") ?? table).after(make("p", { className: "take" }, markdown, csv));
}

function equipOpen(root) {
  for (const table of all(TAKEN, root)) if (!table.closest("details:not([open])")) equip(table);
}

// ---- layers ----

/** Every layer's name, with the class of what is drawn of it where a figure shows it. */
const layers = new Map();
for (const row of all("table.asked tbody tr, table.full tbody tr")) {
  const name = layerOf(row);
  if (name) layers.set(name, "");
}
for (const input of all(".keys input")) {
  const name = input.parentElement.querySelector("bdi")?.textContent;
  if (name && /^\d+$/.test(input.value)) layers.set(name, input.value);
}
const names = [...layers.keys()].sort();
const lines = new CSSStyleSheet();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, lines];
const boxes = new Map();
const counted = make("summary");
const chosen = make("p", { className: "chosen", hidden: true });

/** The layer that a column of a figure's table is of: its head is a name and a unit. */
function columnLayer(head) {
  const text = head.textContent.replace(/[\u2068\u2069]/g, "");
  return names.filter((name) => text.startsWith(name + ", ")).sort((a, b) => b.length - a.length)[0];
}

/** Show and hide, everywhere, by the set of hidden layers. Answers and warnings stay: they are of the whole run. */
function showLayers() {
  for (const row of all("main tbody tr")) {
    const name = layerOf(row);
    if (name !== undefined) row.hidden = hidden.has(name);
  }
  const numbers = [...hidden].map((name) => layers.get(name)).filter(Boolean);
  lines.replaceSync(numbers.length ? numbers.map((number) => "svg.chart .k" + number).join(",") + "{display:none}" : "");
  for (const input of all(".keys input")) {
    const name = input.parentElement.querySelector("bdi")?.textContent;
    if (name === undefined) continue;
    input.parentElement.hidden = hidden.has(name);
    if (hidden.has(name)) input.checked = false;
  }
  for (const one of all(".small-multiples > div")) {
    const own = all("h4 .name bdi", one).map((bdi) => bdi.textContent);
    one.hidden = own.length > 0 && own.every((name) => hidden.has(name));
  }
  for (const table of all("table.numbers")) {
    headsOf(table).forEach((head, column) => {
      const away = hidden.has(columnLayer(head));
      if (head.hidden === away) return;
      head.hidden = away;
      for (const row of rowsOf(table)) row.cells[column].hidden = away;
    });
  }
  for (const [name, box] of boxes) box.checked = !hidden.has(name);
  counted.textContent = hidden.size ? "Layers: " + (names.length - hidden.size) + " of " + names.length : "Layers: all";
  showChosen();
  document.dispatchEvent(new Event("layers"));
}

/** Say above everything what differs from the page as it was made. */
function showChosen() {
  const parts = [];
  if (hidden.size) {
    parts.push("Hidden by choice in tables and figures: ", ...[...hidden].sort().flatMap((name, number) =>
      [number ? ", " : "", make("bdi", { textContent: name })]), ". Answers, ranks and warnings are of all layers. ");
  }
  if (percentile !== "p50") {
    parts.push("Short tables show the " + percentiles[percentile] + " by choice, above the lowest and highest launch. ");
  }
  if (base) {
    parts.push("Tables divide by ", make("bdi", { textContent: base }), " by choice: median by median, without interval " +
      "and verdict. To have those: cadge report FILE --baseline LAYER -o NEW. ");
  }
  if (base || percentile !== "p50") parts.push("Answers, ranks and figures stay as they were made.");
  chosen.hidden = !parts.length;
  chosen.replaceChildren(...parts);
}

// ---- another percentile, another baseline: in tables, of numbers that the page has already ----

const cases = new Map();
for (const table of all("table.full")) cases.set(table.dataset.case, [...(cases.get(table.dataset.case) ?? []), table]);
const columnOf = (table, field) => headsOf(table).findIndex((head) => head.dataset.f === field);
const rowOf = (table, wait, layer) => rowsOf(table).find((row) => row.dataset.wait === wait && layerOf(row) === layer);
const p90s = all("table.summary").filter((table) => table.querySelector("[data-p90]"));
const p99s = all("table.summary").filter((table) => headsOf(table).some((head) =>
  (cases.get(head.dataset.case) ?? []).some((one) => columnOf(one, "p99") > 0)));
const short = [...new Set([...p90s, ...p99s])];
const percentiles = {
  p50: "p50", ...(p90s.length ? { p90: "p90" } : {}), ...(p99s.length ? { p99: "p99", p999: "p99.9" } : {}),
};
const judged = all("table.full").filter((table) => columnOf(table, "verdict") > 0);
const bases = judged.length ? [...new Set(judged.flatMap((table) => rowsOf(table).map((row) => layerOf(row))))].sort() : [];
const made = new Map();

/** Remember once what an element held, and give it that again. */
function asMade(node) {
  if (!made.has(node)) made.set(node, { children: [...node.childNodes], v: node.dataset.v, name: node.className });
  const { children, v, name } = made.get(node);
  node.replaceChildren(...children);
  node.className = name;
  if (v === undefined) delete node.dataset.v;
  else node.dataset.v = v;
}

function again(table) {
  const order = sorts.get(firstOrder.get(table).name);
  if (order) sort(table, order);
}

/** The p90 as a cell: the short tables alone carry it. */
function p90Of(cell) {
  if (!cell.dataset.p90) return undefined;
  const [value, range] = cell.dataset.p90.split("|");
  return make("td", { className: /\d/.test(value) ? "" : "none" }, value, make("small", { textContent: range }));
}

/** A cell of the short tables is what the table of all columns has of its layer, at this percentile. */
function showPercentile() {
  const away = percentile !== "p50";
  for (const table of short) {
    const title = table.querySelector("caption > span");
    asMade(title);
    if (away) title.textContent = title.textContent.replace("p50", percentiles[percentile]);
    headsOf(table).forEach((head, column) => {
      if (head.classList.contains("ratio")) {
        head.hidden = away;
        for (const row of rowsOf(table)) if (row.cells[column]) row.cells[column].hidden = away;
      }
      const full = head.dataset.case && (cases.get(head.dataset.case) ?? []).find((one) => columnOf(one, percentile) > 0);
      if (!head.dataset.case) return;
      for (const row of rowsOf(table)) {
        const cell = row.cells[column];
        asMade(cell);
        if (!away) continue;
        const found = percentile === "p90" ? p90Of(cell)
          : full && rowOf(full, table.dataset.wait, layerOf(row))?.cells[columnOf(full, percentile)];
        cell.replaceChildren(...(found ? [...found.cloneNode(true).childNodes] : ["\u2013"]));
        cell.className = "num" + (!found || found.classList.contains("none") ? " none" : "");
        if (found?.dataset.v) cell.dataset.v = found.dataset.v;
      }
    });
    again(table);
  }
  showChosen();
}

/** Verdicts give way to plain ratios of medians: what would judge them has not been computed. */
function showBase() {
  for (const table of judged) {
    for (const [field, of] of [["verdict", "p50"], ["p99_verdict", "p99"]]) {
      const [column, from] = [columnOf(table, field), columnOf(table, of)];
      if (column < 0 || from < 0) continue;
      const head = headsOf(table)[column];
      const text = (head.querySelector(".by") ?? head).firstChild;
      if (!made.has(head)) made.set(head, text.data);
      text.data = base ? (field === "verdict" ? "" : "p99 ") + "\u00f7 " + base : made.get(head);
      table.style.setProperty("--h" + (column + 1), JSON.stringify(text.data));
      for (const row of rowsOf(table)) {
        const cell = row.cells[column];
        asMade(cell);
        if (!base) continue;
        const ratio = numberOf(row.cells[from]) / numberOf(rowOf(table, row.dataset.wait, base)?.cells[from]);
        const told = Number.isFinite(ratio) && layerOf(row) !== base;
        cell.className = told ? "" : "none";
        delete cell.dataset.v;
        if (told) cell.dataset.v = String(ratio);
        cell.replaceChildren(told ? (ratio >= 100 ? String(Math.round(ratio)) : ratio.toPrecision(3)) + "\u00d7" : "\u2013",
          make("small", { textContent: told ? "no verdict" : layerOf(row) === base ? "the baseline" : "one has no number" }));
      }
    }
    again(table);
  }
  showChosen();
}

/** Choose both, by radio buttons and a list. */
function choices() {
  const list = make("ul", { className: "shown" });
  if (short.length) {
    const radios = Object.entries(percentiles).map(([key, text]) => {
      const radio = make("input", { type: "radio", name: "percentile", value: key, checked: key === percentile });
      radio.addEventListener("change", () => { percentile = key; showPercentile(); keep(); });
      document.addEventListener("choice", () => { radio.checked = key === percentile; });
      return make("label", {}, radio, text);
    });
    list.append(make("li", {}, make("fieldset", {}, make("legend", { textContent: "Short tables show" }), ...radios)));
  }
  if (bases.length > 1) {
    const pick = make("select", {}, make("option", { value: "", textContent: "as judged" }),
      ...bases.map((name) => make("option", { value: name, textContent: name })));
    pick.addEventListener("change", () => { base = pick.value; showBase(); keep(); });
    document.addEventListener("choice", () => { pick.value = base; });
    list.append(make("li", {}, make("label", {}, "Tables divide by ", pick)));
  }
  return list.children.length ? fold(make("summary", { textContent: "Compare by" }), list) : "";
}

function panel() {
  const list = document.querySelector("nav ul");
  if (!list || names.length < 2) return;
  const shown = make("ul", { className: "shown" });
  const set = (change) => { change(); showLayers(); keep(); };
  shown.append(make("li", {},
    button("Show all", () => set(() => hidden.clear())),
    button("Hide all", () => set(() => names.forEach((name) => hidden.add(name)))),
    button("Copy link", () => copy(location.href, "Link"))));
  for (const name of names) {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => set(() => (box.checked ? hidden.delete(name) : hidden.add(name))));
    boxes.set(name, box);
    shown.append(make("li", {}, make("label", {}, box, make("bdi", { textContent: name }))));
  }
  list.append(fold(counted, shown), choices());
}

/** What the navigation's list unfolds; Escape folds it again. */
function fold(summary, content) {
  const folded = make("details", { className: "layers-shown" }, summary, content);
  folded.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !folded.open) return;
    folded.open = false;
    summary.focus();
  });
  return make("li", {}, folded);
}

// ---- values of a figure ----

const UNITS = { B: 0, KiB: 10, MiB: 20, GiB: 30 };

/** The binary logarithm of a size as it is written, "4 KiB"; NaN of anything else. */
function logSize(text) {
  const found = /^([\d.]+)\s(B|KiB|MiB|GiB)$/.exec(text.trim().replaceAll("\u202f", " "));
  return found ? Math.log2(+found[1]) + UNITS[found[2]] : NaN;
}

/** How sizes lie on a picture: its px at log size 0, and px a doubling; null where its ticks do not say. */
function scaleOf(svg) {
  const box = svg.getBoundingClientRect();
  if (!box.width) return null;
  const ticks = all("text", svg).map((text) => {
    const own = text.getBoundingClientRect();
    return { size: logSize(text.textContent), x: own.left + own.width / 2 - box.left };
  }).filter((tick) => Number.isFinite(tick.size)).sort((a, b) => a.size - b.size);
  if (ticks.length < 2) return null;
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  const step = (last.x - first.x) / (last.size - first.size);
  const start = first.x - step * first.size;
  const fits = Number.isFinite(step) && step > 0 && ticks.every((tick) => Math.abs(start + step * tick.size - tick.x) < 3);
  return fits ? { start, step, width: box.width } : null;
}

/** How two layers rank, from size to size: those that are picked out, or the only two that are shown. */
function duel(table, picked) {
  const two = headsOf(table).map((head, column) => ({ head, column, layer: columnLayer(head) })).filter(({ head, layer }) =>
    layer !== undefined && !head.hidden && (!picked.size || picked.has(layers.get(layer))));
  if (two.length !== 2) return [];
  const rank = (row, { column }) => parseInt(/; rank (\d+)/.exec(row.cells[column].textContent)?.[1], 10);
  const runs = [];
  for (const row of rowsOf(table)) {
    const apart = rank(row, two[0]) - rank(row, two[1]);
    if (Number.isNaN(apart)) continue;
    const ahead = apart ? two[+(apart > 0)].layer : "";
    const size = wordsOf(row.cells[0]);
    if (!runs.length || runs[runs.length - 1].ahead !== ahead) runs.push({ ahead, first: size });
    runs[runs.length - 1].last = size;
  }
  return runs.flatMap(({ ahead, first, last }, number) => [number ? "; " : "By rank: ", ...(ahead ? [
    make("bdi", { textContent: ahead }), " ahead"] : ["tied"]), " at " + first + (first === last ? "" : " to " + last)]);
}

function readOut(figure) {
  const table = figure.querySelector("table.numbers");
  const svg = figure.querySelector(":scope > .scroll > svg.chart");
  if (!table || !svg) return;
  const rows = rowsOf(table).filter((row) => Number.isFinite(logSize(row.cells[0].textContent)));
  if (rows.length < 2 || new Set(rows.map((row) => row.cells[0].textContent)).size < rows.length) return;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const line = document.createElementNS(svg.namespaceURI, "line");
  line.setAttribute("class", "cursor");
  line.setAttribute("y2", String(height));
  const slider = make("input", { type: "range", min: "0", max: String(rows.length - 1), step: "1", value: "0" });
  slider.setAttribute("aria-label", "Read values: " + wordsOf(figure.querySelector("h3")));
  const out = make("p", { className: "values", tabIndex: 0 });
  out.setAttribute("role", "group");
  out.setAttribute("aria-label", "Values: " + wordsOf(figure.querySelector("h3")));
  const chooser = (figure.closest("#field") ?? figure).querySelector(".keys");
  const pair = make("p");
  pair.setAttribute("role", "status");
  const picked = () => new Set(chooser ? all("input:checked", chooser).map((input) => input.value) : []);

  function show(cursor = true) {
    const row = rows[+slider.value];
    const some = picked();
    const size = row.cells[0].textContent;
    const values = headsOf(table).map((head, column) => ({ head, column, layer: columnLayer(head) }))
      .filter(({ head, column, layer }) => column > 0 && !head.hidden &&
        (!some.size || layer === undefined || some.has(layers.get(layer))))
      .map(({ head, column, layer }) => [layer ?? wordsOf(head), wordsOf(row.cells[column])])
      .filter(([, value]) => value);
    out.replaceChildren(make("b", { textContent: size }),
      ...values.map(([name, value]) => make("span", {}, make("bdi", { textContent: name }), " " + value)));
    slider.setAttribute("aria-valuetext", size + ": " + values.map((one) => one.join(" ")).join("; "));
    const scale = cursor && scaleOf(svg);
    if (!scale) return line.remove();
    const x = String((scale.start + scale.step * logSize(size)) / scale.width * width);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    if (!line.isConnected) svg.append(line);
  }

  slider.addEventListener("input", () => show());
  slider.addEventListener("focus", () => show());
  slider.addEventListener("blur", () => line.remove());
  svg.addEventListener("pointermove", (event) => {
    const scale = scaleOf(svg);
    if (!scale) return;
    const size = (event.clientX - svg.getBoundingClientRect().left - scale.start) / scale.step;
    const far = rows.map((row) => Math.abs(logSize(row.cells[0].textContent) - size));
    slider.value = String(far.indexOf(Math.min(...far)));
    show();
  });
  svg.addEventListener("pointerleave", () => line.remove());
  const beside = figure.closest("#field"); // charts that stand side by side say their values when they are asked
  const again = () => {
    pair.replaceChildren(...duel(table, picked()));
    if (!beside || out.childNodes.length) show(false);
  };
  chooser?.addEventListener("change", again);
  document.addEventListener("layers", again);
  svg.parentElement.after(make("div", { className: "read" }, make("label", {}, "Values at one size", slider), out, pair));
  if (!beside) show(false);
}

// ---- begin ----

document.querySelector("#field .keys")?.append(make("small", { textContent: "Pick two to see which one ranks ahead at each size" }));

document.body.append(said);
document.querySelector("main").prepend(chosen);
panel();
all("figure.fig").forEach(readOut);
equipOpen(document);
document.addEventListener("toggle", (event) => {
  if (event.target instanceof HTMLDetailsElement && event.target.open) equipOpen(event.target);
}, true);
showLayers();
restore();
addEventListener("hashchange", restore);
})();
