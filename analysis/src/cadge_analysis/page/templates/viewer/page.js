// SPDX-License-Identifier: BSD-3-Clause
// The page: takes files, says what they are, and shows them.

const here = (id) => document.getElementById(id);
const status_ = here("status"), alert_ = here("trouble"), shown_ = here("shown");
const loaded = [];
let current = null;

const say = (...text) => { status_.replaceChildren(...text); };
function refuse(file, error) {
  const known = error instanceof Trouble;
  alert_.hidden = false;
  alert_.append(make("p", {}, make("b", {}, name(file)), known ? ": " : ": this page cannot read it. ", name(known ? error.message : String(error))));
}

/** Read files one after another; what is wrong with one says so, and keeps no other from being shown. */
async function take(files) {
  alert_.replaceChildren();
  alert_.hidden = true;
  for (const file of files) {
    say("Reading ", name(file.name), " \u2026");
    try {
      const found = await understood(file, (bytes) => say("Reading ", name(file.name), ": " + megabytes(bytes)));
      loaded.push({ ...found, file: file.name, bytes: file.size, view: { page: 0, order: {}, filter: "", exactly: false, all: false }, chosen: {} });
      current = loaded.findLast((one) => one.table) ?? loaded.at(-1);
    } catch (error) {
      refuse(file.name, error);
    }
  }
  if (current && alert_.hidden) say("Shown: ", name(current.file));
  else say(current ? "Some files were not read, see below." : "Nothing to show yet.");
  show();
  if (!alert_.hidden) alert_.focus();
  else if (current) here("what").focus();
}

/** Distinct values of a column, some of them. */
function listed(table, column, most = 5) {
  const values = table.at.has(column) ? valuesOf(table, table.rows, column).filter((one) => one !== null) : [];
  return values.slice(0, most).map(exact).join(", ") + (values.length > most ? " and " + (values.length - most) + " more" : "");
}

function what(one) {
  const { table } = one;
  const facts = [["File", one.file + ", " + countOf(one.bytes, "byte") + ", " + one.kind], ["Holds", one.schema + (table?.about ? ": " + table.about : "")]];
  if (table) {
    const kept = table.rows.length < table.count ? "; the first " + grouped(String(table.rows.length)) + " are shown, as more do not fit" : "";
    const empty = table.columns.filter((column) => column.empty).length;
    facts.push(["Rows", grouped(String(table.count)) + kept], ["Columns", grouped(String(table.columns.length)) + (empty ? ", " + grouped(String(empty)) + " of them empty" : "")]);
    facts.push(["Campaign", listed(table, "campaign_id")], ["Layers", listed(table, "layer", 40)], ["Patterns", one.imported ? "" : listed(table, "pattern", 40)]);
    facts.push(["Version of Cadge", listed(table, "cadge_version")], ["Hosts", table.name === "launches" ? listed(table, "hosts") : listed(table, "host", 20)]);
  }
  const list = make("dl", { className: "facts" }, ...[...facts, ...one.facts].filter(([, text]) => text)
    .map(([key, text]) => make("div", {}, make("dt", { textContent: key }), make("dd", {}, name(text)))));
  const marks = loaded.filter((each) => each.retracted && (each === one || (table && valuesOf(table, table.rows, "campaign_id").includes(each.campaign)) || each.campaign === one.campaign));
  const banners = marks.map(({ retracted, campaign }) => make("div", { className: "stops" }, make("b", { textContent: "Retracted on " + retracted.at_utc }),
    ": the run ", name(campaign), " is not to be relied on. ", name(retracted.because)));
  return [...banners, list, ...one.notes.map((text) => make("p", { className: "dim", textContent: text }))];
}

function rowsOf(one, focus) {
  const { table, view } = one;
  const words = wordsOf(view.filter);
  const drawn_ = table.rows.length ? caseOf(table, one.chosen) : {};
  const all = view.whole || !drawn_.axis ? table.rows : drawn_.rows;
  const rows = sorted(table, all.filter((row) => passes(table, words, row)), view.order);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  view.page = Math.min(view.page, pages - 1);
  const from = view.page * PAGE_ROWS;
  const part = rows.slice(from, from + PAGE_ROWS);
  const columns = view.all ? table.columns.filter((column) => !column.empty) : shortColumns(table, all, drawn_.axis && drawn_.measure.name);
  const box = here("rows-box");
  const press = (column) => {
    const { column: was, down } = view.order;
    view.order = was !== column ? { column, down: false } : down ? {} : { column, down: true };
    rowsOf(one, "sort:" + column);
    say(view.order.column ? "Sorted by " + column + (view.order.down ? ", descending" : ", ascending") : "Rows in the file's order");
  };
  const element = make("table", { className: "plain rows" }, make("caption", {}, make("span", { textContent: table.title })));
  fillTable(element, table, part, columns, { order: view.order, exactly: view.exactly, press });
  box.replaceChildren(scrolled("Rows: " + table.title, element));
  here("count").textContent = rows.length ? "Rows " + grouped(String(from + 1)) + " to " + grouped(String(from + part.length)) + " of " + grouped(String(rows.length)) +
    (rows.length < all.length ? " that pass the filter" : "") +
    (rows.length < table.rows.length ? ", of " + grouped(String(table.rows.length)) : "") + (table.rows.length < table.count ? " kept and " + grouped(String(table.count)) + " in the file" : "")
    : "No row passes the filter.";
  here("before").disabled = view.page === 0;
  here("after").disabled = view.page >= pages - 1;
  if (focus) [...box.querySelectorAll("thead .by")].find((by) => by.textContent === columns.map((c) => (view.exactly ? c.name : headOf(c)))[columns.findIndex((c) => "sort:" + c.name === focus)])?.focus();
}

function rows(one) {
  const { table, view } = one;
  const filter = make("input", { type: "search", value: view.filter, id: "filter" });
  filter.addEventListener("input", () => { Object.assign(view, { filter: filter.value, page: 0 }); rowsOf(one); });
  const turn = (step, id, text) => {
    const made = make("button", { type: "button", id, textContent: text });
    made.addEventListener("click", () => { view.page += step; rowsOf(one); here("rows-box").scrollIntoView({ block: "nearest" }); });
    return made;
  };
  const order = [["", "the file"], ...table.columns.filter((column) => !column.empty).flatMap((column) => [[column.name + " up", column.name], [column.name + " down", column.name + ", descending"]])];
  return [
    make("div", { className: "choices" },
      make("label", {}, make("span", { textContent: "Filter" }), filter),
      ...(table.rows.length && caseOf(table, one.chosen).axis ? [choice("Rows", [["", "of the chart"], ["whole", "all of the file"]], view.whole ? "whole" : "", (value) => { Object.assign(view, { whole: Boolean(value), page: 0 }); rowsOf(one); })] : []),
      choice("Order of", order, view.order.column ? view.order.column + (view.order.down ? " down" : " up") : "", (value) => {
        const cut = value.lastIndexOf(" ");
        view.order = value ? { column: value.slice(0, cut), down: value.endsWith(" down") } : {};
        rowsOf(one);
      }),
      choice("Columns", [["", "what was measured, and the measure"], ["all", "all that hold something"]], view.all ? "all" : "", (value) => { view.all = Boolean(value); rowsOf(one); }),
      choice("Numbers", [["", "three digits, for reading"], ["exact", "exactly as in the file"]], view.exactly ? "exact" : "", (value) => { view.exactly = Boolean(value); rowsOf(one); })),
    make("p", { className: "dim", textContent: "A filter's words must all be in a row: text of any cell, or column=text, column>number, column<number." }),
    make("p", { className: "pager" }, turn(-1, "before", "Rows before"), turn(1, "after", "Rows after"), make("span", { id: "count", role: "status" })),
    make("div", { id: "rows-box" }),
  ];
}

function show() {
  shown_.hidden = !current;
  if (!current) return;
  const one = current;
  here("files").replaceChildren(...(loaded.length < 2 ? [] : [choice("Shown", loaded.map((each, at) => [String(at), each.file + ", " + each.schema]), String(loaded.indexOf(one)),
    (value) => { current = loaded[Number(value)]; show(); here("files").querySelector("select").focus(); })]));
  here("facts").replaceChildren(...what(one));
  for (const id of ["chart", "rows"]) here(id).hidden = !one.table;
  if (!one.table) return;
  const draw = (focus) => {
    const at = [...here("chart-box").querySelectorAll("select, input")].indexOf(document.activeElement);
    here("chart-box").replaceChildren(...chartOf(one.table, one.chosen, one.imported ? "Imported: no interval, no verdict, never ranked." : "", (key) => { draw(true); if (!key.startsWith("key:")) rowsOf(one); }));
    if (focus) [...here("chart-box").querySelectorAll("select, input")][at]?.focus();
  };
  draw(false);
  here("rows-parts").replaceChildren(...rows(one));
  rowsOf(one);
}

here("file").addEventListener("change", (event) => take([...event.target.files]).then(() => { event.target.value = ""; }));
here("paste").addEventListener("click", () => {
  const text = here("text").value;
  take([new File([text && !text.endsWith("\n") ? text + "\n" : text], "pasted text")]);
});
for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => { event.preventDefault(); here("drop").classList.add("over"); });
for (const kind of ["dragleave", "drop"]) addEventListener(kind, () => here("drop").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  const files = [...(event.dataTransfer?.files ?? [])];
  if (files.length) take(files);
  else say("What was dropped is no file.");
});
here("take").hidden = false;
