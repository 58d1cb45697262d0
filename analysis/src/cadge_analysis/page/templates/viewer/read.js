// SPDX-License-Identifier: BSD-3-Clause
// From a file to its text, and from text to rows: nothing here knows what they mean.

/** What a reader is told instead of a table. */
class Trouble extends Error {}
const trouble = (text, line) => new Trouble(line ? "Line " + grouped(String(line)) + ": " + text : text);

const megabytes = (bytes) => grouped(String(Math.round(bytes / 1e6))) + " MB";
const starts = (head, text, at = 0) => [...text].every((one, i) => head[at + i] === one.charCodeAt(0));

/** Raise Trouble for what is no text, by its first bytes. */
function refuseBinary(head) {
  if (starts(head, "PAR1")) {
    throw trouble("This is Parquet, which this page does not read. Export it again: cadge export --format csv, or jsonl.");
  }
  if (starts(head, "ustar", 257)) {
    throw trouble("This is an archive. Unpack it (tar -xf), and drop one of its files, for example summary.csv.");
  }
  if (starts(head, "PK")) throw trouble("This is a ZIP archive. Unpack it, and drop one of its files.");
  if (head.subarray(0, 512).includes(0)) throw trouble("This is no text, so it is nothing that cadge export writes.");
}

const isPacked = (head) => head[0] === 0x1f && head[1] === 0x8b;

/** Yield a file's text piece by piece; what gzip packed is unpacked. Raises Trouble. */
async function* textOf(blob, progress) {
  if (blob.size > KNOWN.most_bytes) {
    throw trouble("The file has " + megabytes(blob.size) + "; this page reads at most " + megabytes(KNOWN.most_bytes) +
      ". Take a smaller table (cadge export --table), or ask with cadge query.");
  }
  const packed = isPacked(new Uint8Array(await blob.slice(0, 2).arrayBuffer()));
  const stream = packed ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let bytes = 0, line = 1, first = true;
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch {
      throw trouble(packed ? "The packed data is damaged or cut off after " + countOf(bytes, "byte") + " of text." : "The file cannot be read.", packed ? line : 0);
    }
    if (first && piece.value) {
      refuseBinary(piece.value);
      first = false;
    }
    bytes += piece.value?.length ?? 0;
    if (bytes > KNOWN.most_bytes) {
      reader.cancel().catch(() => {});
      throw trouble("Unpacked the file has more than " + megabytes(KNOWN.most_bytes) + ", the most that this page reads.");
    }
    let text;
    try {
      text = piece.done ? decoder.decode() : decoder.decode(piece.value, { stream: true });
    } catch {
      throw trouble("What follows is no UTF-8 text: the file was changed, cut off, or is of something else.", line);
    }
    if (text) yield text;
    if (piece.done) return;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) line += 1;
    progress(bytes);
  }
}

/** Records of CSV (RFC 4180) in pieces of text; `row` gets the fields of each and the line where it begins. */
class Csv {
  constructor(row) {
    Object.assign(this, { row, line: 1, begun: 1, fields: [], text: "", state: "start" });
  }

  end(last) {
    this.fields.push(this.text);
    this.text = "";
    this.state = "start";
    if (!last) return;
    if (this.fields.length > 1 || this.fields[0] !== "") this.row(this.fields, this.begun);
    this.fields = [];
    this.line += 1;
    this.begun = this.line;
  }

  take(piece) {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at);
      if (this.state === "quoted") {
        if (code === 34) {
          this.text += piece.slice(from, at);
          this.state = "quote";
        } else if (code === 10) {
          this.line += 1;
        }
      } else if (code === 44 || code === 10) {
        if (this.state === "plain") this.text += piece.slice(from, at);
        if (code === 10 && this.state === "plain") this.text = this.text.replace(/\r$/, "");
        this.end(code === 10);
      } else if (this.state === "start") {
        this.state = code === 34 ? "quoted" : "plain";
        from = code === 34 ? at + 1 : at;
      } else if (this.state === "quote") {
        if (code === 34) {
          this.text += '"';
          this.state = "quoted";
          from = at + 1;
        } else if (code !== 13) {
          throw trouble("Text follows a quoted field without a comma: the file was changed.", this.line);
        }
      } else if (code === 34) {
        throw trouble("A quotation mark stands within a field that has none around it: the file was changed.", this.line);
      }
    }
    if (this.state === "plain" || this.state === "quoted") this.text += piece.slice(from);
  }

  /** Take the end of the file; tell whether the last line had an end. */
  close() {
    if (this.state === "quoted") {
      throw trouble("A quoted field that begins in this record is not closed: the file is cut off.", this.begun);
    }
    if (this.state === "start" && !this.fields.length) return true;
    this.end(true);
    return false;
  }
}

/** Whole numbers that JavaScript would round keep their digits, where the browser tells how they were written. */
const WIDE = /(?<![\d.])\d{16,}(?![\d.eE])/;
const keepWide = (_key, value, context) =>
  (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? BigInt(context.source) : value);

const TOKEN = /\s*(?:[{}[\],:]|"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b|true\b|false\b|null\b)/y;

/** Where a text that is no JSON breaks: as the browser says, else where no piece of JSON stands. */
function breakOf(text, message) {
  const said = /position (\d+)/.exec(message);
  if (said) return Number(said[1]);
  let at = 0;
  for (TOKEN.lastIndex = 0; TOKEN.test(text); at = TOKEN.lastIndex);
  return at;
}

/** Parse JSON. Raises Trouble with the line, counted from `line`, that of the text's beginning. */
function parsed(text, line = 1) {
  try {
    return WIDE.test(text) ? JSON.parse(text, keepWide) : JSON.parse(text);
  } catch (error) {
    const at = breakOf(text, error.message);
    const cut = !text.slice(at).trim();
    throw trouble(cut ? "The JSON ends before it is complete: the file is cut off." : "This is no JSON: the file was changed or is of something else.",
      line + text.slice(0, at + text.slice(at).search(/\S|$/)).trimEnd().split("\n").length - 1);
  }
}

/** Read a file. `sink` tells what becomes of a CSV record, of a JSON line, of a JSON document. Raises Trouble. */
async function read(blob, sink, progress) {
  if (!blob.size) throw trouble("The file is empty.");
  const pieces = textOf(blob, progress);
  let begun = "", ended = false;
  while (!/\S[^]*?\n\s*\S/.test(begun) && !ended) {
    const next = await pieces.next();
    ended = next.done;
    begun += next.value ?? "";
  }
  const found = begun.trimStart();
  if (!found) throw trouble("The file holds nothing but space.");
  if (found.startsWith("<")) {
    throw trouble("This is a page or a picture. A report shows itself: open it in a browser. Here goes what cadge export writes.", 1);
  }
  async function* rest() {
    yield begun;
    if (!ended) yield* pieces;
  }
  if (!/^[{[]/.test(found)) return csv(rest(), sink);
  const [line, more] = [found.slice(0, (found + "\n").indexOf("\n")), /\n\s*\S/.test(found)];
  let whole = false;
  try {
    const one = JSON.parse(line);
    whole = Array.isArray(one) || (!more && ended && one.schema !== undefined);
  } catch {
    whole = true;
  }
  return whole ? document_(rest(), sink) : jsonLines(rest(), sink);
}

async function csv(pieces, sink) {
  const records = new Csv((fields, line) => sink.record(fields, line));
  for await (const piece of pieces) records.take(piece);
  return { kind: "CSV", ended: records.close(), line: records.line };
}

async function jsonLines(pieces, sink) {
  let open = "", line = 1;
  const take = (text) => {
    if (text.trim()) sink.line(parsed(text, line), line, text);
    line += 1;
  };
  for await (const piece of pieces) {
    const lines = (open + piece).split("\n");
    open = lines.pop();
    lines.forEach(take);
  }
  const ended = !open.trim();
  if (!ended) take(open);
  return { kind: "JSON Lines", ended, line };
}

async function document_(pieces, sink) {
  const all = [];
  for await (const piece of pieces) all.push(piece);
  const text = all.join("");
  sink.document(parsed(text), text);
  return { kind: "JSON", ended: true, line: 0 };
}
