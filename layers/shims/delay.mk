# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := shims/delay.c shims/shim.c
LAYER_PKGS :=
