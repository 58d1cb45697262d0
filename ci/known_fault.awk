# SPDX-License-Identifier: BSD-3-Clause
# Exit status 0 where a layer file lists a test under known_faults; 1 where it does not. It needs no Python package.
#
#   awk -v test=NAME -v where=PATTERN -v library=NAME -f ci/known_fault.awk layers/STYLE/SUBSTRATE.layer.yml
#
# where: "place: between", or a pattern of several such; library: of the layer's provider, "" where it has none.
/^[^ ]/ { inside = /^known_faults:/ }
!inside { next }
/^  - / { entry = "" }
{
  line = $0
  gsub(/[{}]/, ",", line)
  sub(/^  - /, ",", line)
  sub(/^    /, ",", line)
  entry = entry line ","
  of = match(entry, /, *provider: [a-z]+/) ? substr(entry, RSTART, RLENGTH) : ""
  sub(/.* /, "", of)
  if (entry ~ ", *test: " test " *," && entry ~ ", *(" where ") *," && entry ~ /, *reason:/ && (of == "" || of == library)) found = 1
}
END { exit !found }
