// SPDX-License-Identifier: BSD-3-Clause
// Who looks how: the rules of looks.yml, as draw/palette.py applies them; a test holds the two together.

function crc32(text) {
  let found = -1;
  for (const byte of new TextEncoder().encode(text)) {
    found ^= byte;
    for (let bit = 0; bit < 8; bit += 1) found = (found >>> 1) ^ (0xedb88320 & -(found & 1));
  }
  return (found ^ -1) >>> 0;
}

const keyOf = (look) => [look.slot, look.marker, look.variant].join(" ");

function wanted(series) {
  const { colours, markers, substrates, styles, variants } = KNOWN.looks;
  const cut = series.layer.indexOf("-");
  const style = cut < 0 ? series.layer : series.layer.slice(0, cut);
  const substrate = cut < 0 ? "" : series.layer.slice(cut + 1);
  const slot = Object.hasOwn(substrates, substrate) ? substrates[substrate] : crc32(substrate) % colours;
  const marker = Object.hasOwn(styles, style) ? markers.indexOf(styles[style]) : crc32(style) % markers.length;
  const known = Object.hasOwn(styles, style) && Object.hasOwn(substrates, substrate);
  return { known, look: { slot, marker, variant: series.plain ? 0 : 1 + crc32(series.label) % (variants.length - 1) } };
}

function* nearest(look) {
  const { markers, variants } = KNOWN.looks;
  const [others, many] = [variants.length - 1, markers.length];
  const turned = [...Array(many).keys()].map((step) => (look.marker + step) % many);
  let order = [...Array(others).keys()].map((step) => (look.variant - 1 + step + others) % others + 1);
  if (look.variant === 0) {
    for (const marker of turned) yield { ...look, marker };
    order = [...Array(others).keys()].map((step) => step + 1);
  }
  for (const marker of turned) for (const variant of order) yield { slot: look.slot, marker, variant };
}

/** A look for each series {label, layer, shims, settings, plain}: of two that want the same, one takes the next. */
function looksOf(several) {
  const taken = new Set();
  const found = new Map();
  const rank = (one) => [one.plain ? "0" : "1", wanted(one).known ? "0" : "1", one.layer, one.shims, one.settings].join("\u0000");
  const ordered = [...several].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
  for (const one of ordered) {
    const own = wanted(one).look;
    let look = own;
    for (const next of nearest(own)) {
      if (taken.has(keyOf(next))) continue;
      look = next;
      break;
    }
    taken.add(keyOf(look));
    found.set(one.label, look);
  }
  return found;
}

/** A look's marker, in a box of so many pixels around a place. */
function markOf(look, x, y, half) {
  const colour = "var(--s" + look.slot + ")";
  const hollow = KNOWN.looks.variants[look.variant].hollow;
  return drawn("path", {
    d: KNOWN.looks.shapes[look.marker], transform: "translate(" + x.toFixed(1) + " " + y.toFixed(1) + ") scale(" + half + ")",
    style: "fill:" + (hollow ? "var(--page)" : colour) + ";stroke:" + (hollow ? colour : "none") + ";stroke-width:" + (1.4 / half).toFixed(2),
  });
}
const dashOf = (look) => KNOWN.looks.variants[look.variant].dash.join(" ");
