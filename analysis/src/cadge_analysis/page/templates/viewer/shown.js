// SPDX-License-Identifier: BSD-3-Clause
// Numbers and units for people, by the rules that the page carries: a column's unit ends its name.

const THIN = "\u202f";
const MISSING = "\u2013";
const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
const isNumber = (value) => typeof value === "number" || typeof value === "bigint";

/** Exactly as in the file; JavaScript has no exponent below 1e21. */
const exact = (value) => (value === null ? "" : typeof value === "boolean" ? (value ? "true" : "false") : String(value));

/** Three significant digits, without exponent, as in a report: 17.0, 4.81, 12 300. */
function rounded(value) {
  if (typeof value === "bigint") return grouped(String(value));
  if (value === 0) return "0";
  const sign = value < 0 ? "\u2212" : "";
  const [digits, exponent] = Math.abs(value).toExponential(2).split("e");
  if (Math.abs(value) < 1e-4) return sign + "<0.0001";
  const [whole, rest] = Number(digits + "e" + exponent).toFixed(Math.max(0, 2 - exponent)).split(".");
  return sign + grouped(whole) + (rest ? "." + rest : "");
}

/** A round number, of an axis: 20, 0.5. */
const round = (value) => rounded(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

/** The unit of a column by its name's end, the longest that fits; null where it says none. */
function unitOf(column) {
  return KNOWN.units.filter((one) => column.endsWith(one.end) || column === one.end.slice(1))
    .sort((a, b) => b.end.length - a.end.length)[0] ?? null;
}

/** The step of a unit in which some values read well: [text, divisor]; by the greatest of them. */
function stepOf(unit, values) {
  if (!unit) return ["", 1];
  const most = values.reduce((found, one) => Math.max(found, Math.abs(Number(one))), 0);
  return unit.steps.filter(([, divisor]) => most >= divisor).pop() ?? unit.steps[0];
}

/** A size that is a whole number of a greater unit is told in it: 4 KiB; never rounded. */
function size(value) {
  const steps = KNOWN.units.find((one) => one.exact).steps;
  const [text, divisor] = steps.filter(([, one]) => value >= one && value % one === 0).pop() ?? steps[0];
  return grouped(String(value / divisor)) + " " + text;
}

const isSize = (column) => Boolean(unitOf(column)?.exact);

/** One cell for people. */
function told(column, value) {
  if (value === null) return MISSING;
  if (!isNumber(value)) return exact(value);
  if (isSize(column.name) && Number.isSafeInteger(value)) return size(value);
  if (column.step) return rounded(Number(value) / column.step[1]);
  return Number.isInteger(value) || typeof value === "bigint" ? grouped(exact(value)) : rounded(value);
}

/** A column's name, with the unit that `told` shows it in. */
const headOf = (column) => (column.step && !isSize(column.name) ? column.name + ", " + column.step[0] : column.name);

const countOf = (number, noun, plural = noun + "s") => grouped(String(number)) + " " + (number === 1 ? noun : plural);
