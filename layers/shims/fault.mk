# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := shims/fault.c shims/shim.c
LAYER_PKGS :=
