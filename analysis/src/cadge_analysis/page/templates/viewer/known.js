// SPDX-License-Identifier: BSD-3-Clause
// What a file is: the tables of cadge export, and the stored formats, by their names and versions.

const tableNamed = (key) => KNOWN.tables.find((one) => one.name === key);

/** The table whose columns these are. Raises Trouble where they are of none. */
function tableOf(columns) {
  const own = new Set(columns);
  const [best] = KNOWN.tables
    .map((table) => ({ table, missing: table.columns.filter((one) => !own.has(one.name)).map((one) => one.name) }))
    .sort((a, b) => a.missing.length / a.table.columns.length - b.missing.length / b.table.columns.length);
  const twice = columns.find((one, at) => columns.indexOf(one) !== at);
  if (twice !== undefined) throw trouble("The column " + twice + " is there twice: the file was changed.", 1);
  if (best.missing.length) {
    throw trouble("These are not the columns of a table that cadge export writes. The nearest is " + best.table.name +
      ", of which these are missing: " + best.missing.slice(0, 8).join(", ") + (best.missing.length > 8 ? " and more" : "") + ".", 1);
  }
  return best.table;
}

const MARKS = KNOWN.ends;

/** Columns with what their names say: kind, unit, ends of an interval, whether they are parameters of a pattern. */
function columnsOf(table, names) {
  const fixed = new Map(table.columns.map((one) => [one.name, one]));
  const own = new Set(names);
  const after = names.indexOf("pattern");
  const before = names.findIndex((one) => one === "state" || one === "status");
  return names.map((column, at) => {
    const known = fixed.get(column);
    const end = MARKS.flatMap(({ low, high, about }) => [...column.matchAll(/_/g), { index: column.length }]
      .map(({ index }) => [column.slice(0, index) + low + column.slice(index), column.slice(0, index) + high + column.slice(index), about]))
      .find(([low, high]) => own.has(low) && own.has(high));
    return {
      name: column,
      kind: known?.kind ?? (unitOf(column) && !(at > after && at < before) ? "number" : null),
      about: known?.about ?? (KNOWN.about.find(([last]) => column.endsWith(last)) ?? [])[1] ?? "",
      fixed: Boolean(known),
      parameter: !known && after >= 0 && at > after && at < before,
      low: end?.[0], high: end?.[1], ends: end?.[2],
      limit: MARKS.some(({ low, high }) => [[low, high], [high, low]].some(([one, other]) => [...column.matchAll(new RegExp(one, "g"))]
        .some(({ index }) => own.has(column.slice(0, index) + other + column.slice(index + one.length))))),
    };
  });
}

const NUMBER = /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/;
const numberFrom = (text) => (/^-?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text)) ? BigInt(text) : Number(text));

/** A field of CSV by its column's kind. Text that would have been a formula loses the apostrophe that export gave it. */
function fromText(text, column, line) {
  if (text === "") return null;
  if (column.kind === "text" || column.kind === null) return text.replace(/^'(?=[=+\-@\t\r\n])/, "");
  if (column.kind === "boolean") {
    if (text === "True" || text === "False") return text === "True";
  } else if (NUMBER.test(text)) {
    return numberFrom(text);
  }
  throw trouble("In the column " + column.name + " stands " + JSON.stringify(text.slice(0, 40)) + ", which is no " +
    (column.kind === "boolean" ? "True or False" : "number") + ": the file was changed.", line);
}

/** The same of a value of JSON. */
function fromJson(value, column, line) {
  if (value === null) return null;
  const is = isNumber(value) ? "number" : typeof value;
  const wants = { text: "string", boolean: "boolean", integer: "number", number: "number" }[column.kind] ?? is;
  if (is === wants && is !== "object") return value === "" ? null : value;
  throw trouble("In the column " + column.name + " stands " + JSON.stringify(String(value).slice(0, 40)) + ", which is no " +
    (column.kind ?? "single value") + ": the file was changed.", line);
}

/** Rows as they come; those beyond what fits in memory are counted alone. */
class Table {
  constructor(table, names) {
    this.title = table.title;
    this.name = table.name;
    this.about = table.about;
    this.columns = columnsOf(table, names);
    this.at = new Map(names.map((one, at) => [one, at]));
    this.rows = [];
    this.count = 0;
  }

  add(values) {
    this.count += 1;
    if (this.rows.length * this.columns.length < KNOWN.most_cells) this.rows.push(values);
  }

  value(row, column) {
    return this.at.has(column) ? row[this.at.get(column)] : null;
  }

  /** Give what names alone do not tell: which columns hold numbers, in which unit they read well, which are empty. */
  settle() {
    this.columns.forEach((column, at) => {
      const values = this.rows.map((row) => row[at]).filter((one) => one !== null);
      if (column.kind === null && values.length && values.every((one) => isNumber(one) || (typeof one === "string" && NUMBER.test(one)))) {
        column.kind = "number";
        for (const row of this.rows) if (typeof row[at] === "string") row[at] = numberFrom(row[at]);
      }
      column.empty = !values.length;
      column.numeric = column.kind === "number" || column.kind === "integer";
      const unit = column.numeric ? unitOf(column.name) : null;
      column.step = unit ? stepOf(unit, values.filter((one) => isNumber(one)).sort((a, b) => Number(a) - Number(b)).slice(0, Math.ceil(values.length / 2))) : null;
    });
    return this;
  }

  state(row) {
    return this.value(row, "state") ?? this.value(row, "status");
  }
}

/** Facts of any document: its single values, one level below as well. */
function factsOf(found) {
  const facts = [];
  for (const [key, value] of Object.entries(found)) {
    if (key === "schema") continue;
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      for (const [inner, one] of Object.entries(value)) if (one === null || typeof one !== "object") facts.push([key + " " + inner, exact(one)]);
    } else if (Array.isArray(value)) {
      if (value.every((one) => typeof one === "string")) facts.push([key, value.join(", ")]);
      else facts.push([key, countOf(value.length, "entry", "entries")]);
    } else {
      facts.push([key, exact(value)]);
    }
  }
  return facts.filter(([, text]) => text !== "").slice(0, 40);
}

/** The name of a stored format. Raises Trouble for one that is not known here, or of another major version. */
function formatOf(found, text) {
  const schema = found?.schema;
  if (typeof schema !== "string") throw trouble("This JSON names no format (schema), so it is nothing that Cadge writes.", 1);
  const before = text.slice(0, Math.max(0, text.search(/"schema"\s*:/)));
  const line = text.split("\n").findIndex((one) => one.includes('"schema"') && one.includes(JSON.stringify(schema))) + 1 || before.split("\n").length;
  const [, key, major] = /^([a-z]+(?:\.[a-z-]+)+)\/(\d+)(?:\.\d+)?$/.exec(schema) ?? [];
  if (!key || !Object.hasOwn(KNOWN.formats, key)) {
    throw trouble("The format " + JSON.stringify(schema.slice(0, 60)) + " is not known here. Known are: " + Object.keys(KNOWN.formats).sort().join(", ") + ".", line);
  }
  if (+major !== KNOWN.formats[key]) {
    throw trouble("The file is of the format " + schema + "; this page, made by Cadge " + KNOWN.version + ", reads " + key + "/" + KNOWN.formats[key] +
      ". Make the page with the version of Cadge that wrote the file: cadge viewer -o viewer.html.", line);
  }
  return key;
}

/** An export as one JSON document: rows, then what was measured a second time. */
function exported(found) {
  if (!Array.isArray(found.rows) || !Array.isArray(found.columns)) throw trouble("The export has no rows, or does not name its columns: the file was changed.", 1);
  const flat = ({ by_launch: _, counted_an_operation: counted = {}, ...row }) =>
    ({ ...row, ...Object.fromEntries(Object.entries(counted).map(([key, value]) => ["counted " + key, value])) });
  const all = [...found.rows, ...(found.twins ?? [])].map(flat);
  const names = [...new Set([...found.columns, ...all.flatMap(Object.keys)])];
  const made = new Table(tableOf(names), names);
  all.forEach((row) => made.add(made.columns.map((column) => fromJson(row[column.name] ?? null, column, 0))));
  const tool = found.tool ?? {};
  return {
    table: made.settle(),
    facts: [["Cadge", [tool.version, tool.revision, tool.dirty ? "with changes that were not committed" : ""].filter(Boolean).join(", ")], ["Hash of the plan", found.plan_hash ?? ""]],
    notes: ["Values of single launches, loads that layers bear and verdicts by family stand in the file, and are not shown here."],
  };
}

/** A launch's record: a row for everything that an endpoint recorded. An attempt counts where every check is ok. */
function launched(record, rows) {
  const { launch, result } = record;
  const attempts = result?.attempts ?? [];
  const own = new Set(attempts.flatMap((one) => (one.checks ?? []).map((check) => check.name)));
  const shared = [...(record.crosschecks ?? []), ...(result?.checks ?? []).filter((check) => !own.has(check.name))];
  const is = {
    campaign_id: launch.campaign_id, launch_id: launch.launch_id, kind: launch.kind, layer: launch.layer, shims: (launch.shims ?? []).join("+"),
    settings: Object.entries(launch.settings ?? {}).map((pair) => pair.join("=")).join(" "), place: launch.place, wait: launch.wait,
  };
  if (!attempts.length) rows.push({ ...is, status: record.status, reason: record.reason ?? result?.reason ?? null });
  for (const attempt of attempts) {
    const failed = [...(attempt.checks ?? []), ...shared].filter((check) => !check.ok).map((check) => check.name);
    const status = attempt.status === "done" ? (failed.length ? "unsound" : "valid") : attempt.status;
    const point = { ...is, point_id: attempt.point_id, pattern: attempt.workload.pattern, ...attempt.workload.parameters, status };
    const end = { reason: attempt.reason ?? null, failed_checks: failed.join(" ") || null };
    const readings = Object.entries(attempt.quantities ?? {}).flatMap(([quantity, several]) => several.map((one) => [quantity, one]));
    if (!readings.length) rows.push({ ...point, ...end });
    for (const [quantity, { endpoint, count, sum_ns, min_ns, max_ns, amount, elapsed_ns, value }] of readings) {
      rows.push({ ...point, quantity, endpoint, count, sum_ns, min_ns, max_ns, amount, elapsed_ns, value, ...end });
    }
  }
}

function fromRows(rows, table, order) {
  const keys = new Set(rows.flatMap((row) => Object.keys(row)));
  const names = [...order.filter((one) => keys.has(one))];
  const at = names.indexOf("pattern") + 1;
  names.splice(at, 0, ...[...keys].filter((one) => !order.includes(one)));
  const made = new Table(table, names);
  for (const row of rows) made.add(made.columns.map((column) => fromJson(row[column.name] ?? null, column, 0)));
  return made.settle();
}

const RECORD = ["campaign_id", "launch_id", "point_id", "kind", "layer", "shims", "settings", "place", "wait", "pattern", "status", "quantity", "endpoint",
  "count", "min_ns", "max_ns", "sum_ns", "amount", "elapsed_ns", "value", "reason", "failed_checks"];

function recorded(records) {
  const rows = [];
  records.forEach((record) => launched(record, rows));
  const several = (of) => [...new Set(records.map(of).filter(Boolean))].slice(0, 5).join(", ");
  return {
    table: fromRows(rows, { ...tableNamed("samples"), title: "what endpoints recorded", name: "records" }, RECORD),
    facts: [
      ["Records of launches", grouped(String(records.length))],
      ["Hosts", [...new Set(records.flatMap((one) => one.launch.endpoints.map((each) => each.host)))].slice(0, 20).join(", ")],
      ["Driver", several((one) => one.result && [one.result.driver.version, one.result.driver.revision].filter(Boolean).join(", "))],
      ["Library", several((one) => one.result?.library && [one.result.library.name, one.result.library.stated_version].filter(Boolean).join(" "))],
      ["Begun", several((one) => one.result?.started_utc)],
    ],
    notes: ["Percentiles stand in histograms, which this page does not unpack; cadge export --table samples has them. Checksums are not checked here."],
  };
}

/** What other tools printed. It stays marked. */
function imported(found) {
  const rows = found.series.flatMap((one) => one.values.map((each) => ({
    origin: "imported", layer: "imported: " + found.label, test: one.test, column: one.column, statistic: one.statistic, kind: one.kind, moves: one.moves,
    pattern: one.test + ", " + one.column + ", " + one.statistic, place: found.place ?? null, bytes: each.bytes,
    [one.kind + KNOWN.imported[one.kind]]: each.value, printed: each.printed + " " + one.unit, line: each.line,
  })));
  const order = ["origin", "layer", "test", "column", "statistic", "kind", "moves", "place", "pattern"];
  const table = fromRows(rows, { name: "imported", title: "what another tool printed", about: "", columns: [] }, [...order, "printed", "line"]);
  table.columns.filter((one) => one.name === "bytes").forEach((one) => { one.parameter = true; });
  return {
    table,
    facts: [["File", found.file], ["Label", found.label], ["Host", found.host], ["Tool", found.version || found.format], ["Note", found.note], ["SHA-256", found.sha256]],
    notes: ["Imported: nobody here knows how many runs stand behind such a number, or what else the machine did meanwhile. It has no interval and no verdict, and ranks nothing. Round trips are whole."],
    imported: true,
  };
}

const SHOWN = { "cadge.export": exported, "cadge.launch-record": (found) => recorded([found]), "cadge.imported": imported };

/** What a document is, by its format. */
function documented(found, text) {
  const key = formatOf(found, text);
  let made = { facts: factsOf(found), notes: [] };
  try {
    if (Object.hasOwn(SHOWN, key)) made = SHOWN[key](found);
    else made.notes.push("A file of this format has no rows that this page shows. What its fields mean: results/FORMAT.md.");
  } catch (error) {
    if (error instanceof Trouble) throw error;
    throw trouble("A part of " + found.schema + " is missing or of another kind: the file was changed.", 1);
  }
  return { ...made, schema: found.schema, retracted: found.retracted ?? null, campaign: found.campaign_id ?? found.launch?.campaign_id ?? null };
}

/** Read a file, and tell what it is: {kind, schema, table, facts, notes, retracted, campaign}. Raises Trouble. */
async function understood(blob, progress) {
  let table = null, found = null, records = [], names = null;
  const sink = {
    record(fields, line) {
      if (!names) {
        names = fields.map((one) => one.replace(/^'(?=[=+\-@\t\r\n])/, ""));
        table = new Table(tableOf(names), names);
        return;
      }
      if (fields.length !== names.length) {
        throw trouble("There are " + countOf(fields.length, "field") + ", and the first line names " + grouped(String(names.length)) + ": the file was changed or is cut off.", line);
      }
      table.add(fields.map((text, at) => fromText(text, table.columns[at], line)));
    },
    line(one, line, text) {
      if (one === null || typeof one !== "object" || Array.isArray(one)) throw trouble("This line is no record.", line);
      if (one.schema !== undefined) {
        if (formatOf(one, text) !== "cadge.launch-record") throw trouble("Of JSON Lines this page reads tables, and records of launches.", line);
        records.push(one);
        return;
      }
      const keys = Object.keys(one);
      if (!names) {
        names = keys;
        table = new Table(tableOf(names), names);
      }
      const wrong = keys.find((key) => !table.at.has(key)) ?? (keys.length < names.length ? names.find((key) => !Object.hasOwn(one, key)) : undefined);
      if (wrong !== undefined) throw trouble("The column " + wrong + " is " + (table.at.has(wrong) ? "missing here" : "in no line before") + ": the file was changed.", line);
      table.add(names.map((key, at) => fromJson(one[key], table.columns[at], line)));
    },
    document(one, text) { found = documented(one, text); },
  };
  const read_ = await read(blob, sink, progress);
  if (records.length) {
    if (table) throw trouble("Rows of a table and records of launches stand in one file: it was changed.", 1);
    found = { ...recorded(records), schema: records[0].schema, retracted: null, campaign: records[0].launch.campaign_id };
  } else if (!found) {
    if (!table.count) throw trouble("The file names columns, and has no rows.", 1);
    found = { table: table.settle(), facts: [], notes: [], schema: "table " + table.name + " of cadge export", retracted: null, campaign: null };
  }
  if (!read_.ended) found.notes.push("The last line (" + grouped(String(read_.line)) + ") has no end: the file may be cut off within its last number.");
  return { ...found, kind: read_.kind };
}
