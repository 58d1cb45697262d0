# SPDX-License-Identifier: BSD-3-Clause
# Sources, relative to layers/, and what must be there: names for pkg-config (LAYER_PKGS), or, for a library that has none, a header
# to look for (LAYER_HEADERS) and how to link it (LAYER_LIBS).
LAYER_SOURCES := skeleton/unix.c kit/adapter.c kit/adapter_net.c
LAYER_PKGS :=
LAYER_HEADERS :=
LAYER_LIBS :=
