# SPDX-License-Identifier: BSD-3-Clause
# Prints what a layer file states that the adapter states as well, one NAME=VALUE a line, for `cadge-conformance --stated`.
# It needs no Python package; ci/tests/test_layer_facts.py holds it against a YAML parser, for every layer file.
#
#   awk -f ci/layer_facts.awk layers/STYLE/SUBSTRATE.layer.yml
#
# todo: the keys whose value begins with TODO; min_bytes: "PLACE WAIT BYTES" of a limit for all patterns ("any": at every one).
function trimmed(text) {
  sub(/^ *[>|]-?/, "", text) # of a block scalar
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  if (text ~ /^".*"$/ || text ~ /^'.*'$/) text = substr(text, 2, length(text) - 2)
  return text
}
function of(key, otherwise) { return key in value ? trimmed(value[key]) : otherwise }
function inner(text, key) { # of "key: word" in flow or block style
  return match(text, "[{, ]" key ": *[A-Za-z0-9_]+") ? last_word(substr(text, RSTART, RLENGTH)) : "any"
}
function last_word(text) { sub(/.*: */, "", text); return text }
function limit(entry) {
  gsub(/reason: *("[^"]*"|'[^']*'|>-.*|[^,}]*)/, "", entry) # which may hold any word
  if (entry ~ /min_bytes:/ && entry !~ /(pattern|parameters):/)
    print "min_bytes=" inner(entry, "place") " " inner(entry, "wait") " " inner(entry, "min_bytes")
}
/^[ \t]*(#|$)/ { next }
{ sub(/[ \t]+#[^"']*$/, "") }
/^[a-z_]+:/ {
  key = substr($0, 1, index($0, ":") - 1)
  value[key] = substr($0, index($0, ":") + 1)
  if (trimmed(value[key]) ~ /^TODO/) todo = todo (todo ? ", " : "") key
  next
}
key == "limits" && /^ *- / { entries[++count] = $0; next }
key == "limits" { entries[count] = entries[count] " " $0; next }
{
  sub(/^[ \t]+/, "")
  value[key] = value[key] " " $0
}
END {
  print "file=" FILENAME
  print "style=" of("style", "")
  print "substrate=" of("substrate", "")
  print "library=" of("library", "")
  print "rpc=" of("rpc", "")
  print "launcher=" of("launcher", "direct")
  print "reliable=" of("reliable", "true")
  places = of("places", "")
  gsub(/[][,-]/, " ", places)
  gsub(/ +/, " ", places)
  print "places=" trimmed(places)
  for (i = 1; i <= count; i++) limit(entries[i])
  if (todo) print "todo=" todo
}
