# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := shims/trace.c shims/shim.c
LAYER_PKGS :=
