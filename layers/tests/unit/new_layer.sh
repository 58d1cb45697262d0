#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Adding a layer takes three new files and edits nothing: a copy of layers/ gets a layer "am-drop" and one that needs a
# package which does not exist; the first is built, the second is absent with the reason, and both change places when the
# package comes and goes.
set -u
root=${CADGE_LAYERS_ROOT:?}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0 failed=0

check() { # check <name> <command...>
	count=$((count + 1))
	name=$1
	shift
	if "$@"; then echo "ok $count - $name"; else echo "not ok $count - $name"; failed=1; fi
}
build() {
	(cd "$work" && PKG_CONFIG_PATH="$work/packages" make -s -f layers/build.mk BUILD=out CC="${CADGE_CC:-cc}" \
		LAYERS="am-drop am-lost" "$@") >"$work/log" 2>&1
}
fails() { ! build "$@"; }
says() { grep -q "$2" "$1"; }
lacks() { [ ! -e "$1" ]; }

cp -R "$root" "$work/layers" || exit 1
(cd "$work/layers" && find . -type f ! -name '*.o' -exec cksum {} + | sort) >"$work/before"
mkdir -p "$work/layers/am" "$work/packages"
sed 's/null-self/am-drop/; s/"null", .substrate = "self"/"am", .substrate = "drop"/' "$root/null/self.c" >"$work/layers/am/drop.c"
sed 's,null/self.c,am/drop.c,' "$root/null/self.mk" >"$work/layers/am/drop.mk"
sed 's/^style:.*/style: am/; s/^substrate:.*/substrate: drop/' "$root/null/self.layer.yml" >"$work/layers/am/drop.layer.yml"
sed 's/am-drop/am-lost/; s/substrate = "drop"/substrate = "lost"/' "$work/layers/am/drop.c" >"$work/layers/am/lost.c"
{ sed 's,am/drop.c,am/lost.c,; /LAYER_PKGS/d' "$work/layers/am/drop.mk"; echo 'LAYER_PKGS := cadge-no-such-package'; } \
	>"$work/layers/am/lost.mk"
sed 's/drop/lost/; s/^packages:.*/packages: {build: [libnosuch-dev, pkg-config], run: [libnosuch0]}/' \
	"$work/layers/am/drop.layer.yml" >"$work/layers/am/lost.layer.yml"

cp "$work/layers/am/drop.c" "$work/layers/am/gone.c"
sed 's,am/drop.c,am/gone.c,; s,null/calls.c,,' "$work/layers/am/drop.mk" >"$work/layers/am/gone.mk"
sed 's/drop/gone/' "$work/layers/am/drop.layer.yml" >"$work/layers/am/gone.layer.yml"
{ cat "$work/layers/am/drop.mk"; echo 'LAYER_HEADERS := stdio.h no/such/header.h'; } >"$work/layers/am/bare.mk"
sed 's/drop/bare/' "$work/layers/am/drop.layer.yml" >"$work/layers/am/bare.layer.yml"

check "the build is green" build
check "the new layer is built" test -s "$work/out/layers/am-drop.so"
check "it exports one symbol" build check-exports
check "the other is absent, with package and Debian name" says "$work/out/layers/am-lost.absent" \
	'cadge-no-such-package.*libnosuch-dev'
check "and has no module" lacks "$work/out/layers/am-lost.so"
check "a module that lacks a function is not linked" fails "LAYERS=am-gone"
check "and the linker says which" says "$work/log" 'undefined reference to .null_call'
check "a library without pkg-config: the build is green" build "LAYERS=am-bare"
check "the header that is missing is named, the other one is not" says "$work/out/layers/am-bare.absent" \
	'^there is no header no/such/header.h; Debian:'
rm "$work"/layers/am/gone.* "$work"/layers/am/bare.*
printf 'Name: x\nDescription: x\nVersion: 1\n' >"$work/packages/cadge-no-such-package.pc"
check "the build is green when its package came" build
check "then it is built" test -s "$work/out/layers/am-lost.so"
check "and no longer absent" lacks "$work/out/layers/am-lost.absent"
touch "$work/stamp"
check "a second build" build
check "builds nothing" test -z "$(find "$work/out" -newer "$work/stamp" -type f)"
rm "$work/packages/cadge-no-such-package.pc"
check "the build is green when its package went" build
check "then it is absent" test -s "$work/out/layers/am-lost.absent"
check "and its module is gone" lacks "$work/out/layers/am-lost.so"
rm "$work"/layers/am/drop.*
(cd "$work" && make -s -f layers/build.mk BUILD=out LAYERS=am-lost CC="${CADGE_CC:-cc}") >"$work/log" 2>&1
check "a layer whose files went leaves no module" lacks "$work/out/layers/am-drop.so"
rm "$work"/layers/am/lost.*
(cd "$work/layers" && find . -type f ! -name '*.o' -exec cksum {} + | sort) >"$work/after"
check "no file of the tree was touched" cmp -s "$work/before" "$work/after"
echo "1..$count"
[ $failed -eq 0 ] || cat "$work/log"
exit $failed
