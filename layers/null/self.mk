# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := null/self.c null/calls.c null/memory.c kit/adapter.c
LAYER_PKGS :=
