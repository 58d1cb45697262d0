// SPDX-License-Identifier: BSD-3-Clause
// Rows on the page: filtered, sorted, a hundred at a time.

const PAGE_ROWS = 100;
const IDENTITY = ["layer", "shims", "settings", "kind", "twin", "place", "wait", "pattern", "quantity", "endpoint", "round"];

/** Tell whether a row has every word of a filter: a text of one of its cells, or column=text, column>number, column<number. */
function passes(table, words, row) {
  return words.every((word) => {
    const [, column, sign, wanted_] = /^([^=<>]+)([=<>])(.*)$/.exec(word) ?? [];
    if (column !== undefined && table.at.has(column)) {
      const value = table.value(row, column);
      if (sign === "=") return exact(value).toLowerCase() === wanted_;
      return isNumber(value) && wanted_ !== "" && (sign === "<" ? value < Number(wanted_) : value > Number(wanted_));
    }
    return row.some((value) => value !== null && exact(value).toLowerCase().includes(word));
  });
}

const wordsOf = (text) => text.toLowerCase().match(/"[^"]*"|\S+/g)?.map((one) => one.replaceAll('"', "")) ?? [];

function compared(one, other) {
  if (isNumber(one) && isNumber(other)) return one < other ? -1 : +(one > other);
  const [a, b] = [exact(one), exact(other)];
  return a < b ? -1 : +(a > b);
}

/** Rows in order of a column; what has no value comes last, either way. */
function sorted(table, rows, { column, down }) {
  if (!column) return rows;
  const at = table.at.get(column);
  return [...rows].sort((one, other) => {
    if (one[at] === null || other[at] === null) return (one[at] === null) - (other[at] === null);
    return (down ? -1 : 1) * compared(one[at], other[at]);
  });
}

/** The columns of the short table: what was measured, where it differs, the measure with its ends, and its state. */
function shortColumns(table, rows, measure) {
  const differs = (at) => rows.some((row) => row[at] !== rows[0][at]);
  const measured = table.columns.find((one) => one.name === measure);
  return table.columns.filter((one, at) => {
    if (one.empty) return false;
    if (measured && [measured.name, measured.low, measured.high].includes(one.name)) return true;
    if (["layer", "host", "state", "status", "reason", "printed", "origin"].includes(one.name)) return true;
    return (IDENTITY.includes(one.name) || one.parameter || (!measured && one.fixed)) && differs(at);
  });
}

/** Fill a table's element. Where there are many columns a row becomes a block, and what is empty is left out. */
function fillTable(element, table, rows, columns, { order, exactly, press }) {
  const many = columns.length > KNOWN.few_columns;
  element.dataset.heads = many ? "many" : "few";
  const heads = columns.map((column) => {
    const head = make("th", { scope: "col", title: column.about });
    const text = exactly ? column.name : headOf(column);
    if (many) {
      head.append(text);
    } else {
      const by = make("button", { type: "button", className: "by" }, text, make("i", { ariaHidden: "true" }));
      by.addEventListener("click", () => press(column.name));
      head.append(by);
    }
    if (order.column === column.name) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    if (column.numeric) head.className = "num";
    return head;
  });
  const body = rows.map((row) => {
    const state = table.state(row);
    const line = make("tr", { className: state && state !== "valid" && state !== "done" && state !== "finished" ? "odd st-" + state.replace(/[^a-z]/g, "") : "" });
    columns.forEach((column, at) => {
      const value = table.value(row, column.name);
      if (many && value === null) return;
      const cell = at ? make("td") : make("th", { scope: "row" });
      cell.dataset.f = column.name;
      cell.style.setProperty("--h", '"' + [...(exactly ? column.name : headOf(column))].map((one) => (/[\w ,/.\u00b5]/.test(one) ? one : "\\" + one.codePointAt(0).toString(16) + " ")).join("") + '"');
      cell.append(column.numeric || value === null ? (exactly ? exact(value) : told(column, value)) : name(exact(value)));
      if (column.numeric && value !== null) Object.assign(cell, { className: "num", title: exact(value) });
      if ((column.name === "state" || column.name === "status") && value !== "valid" && KNOWN.states[value]) cell.append(make("small", { textContent: KNOWN.states[value] }));
      line.append(cell);
    });
    return line;
  });
  element.replaceChildren(element.caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body));
}
