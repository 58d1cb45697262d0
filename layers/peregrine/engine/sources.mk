# SPDX-License-Identifier: BSD-3-Clause
# What the engine is made of, relative to layers/, and what it needs. For layers, tests and its own library alike.
PGR_ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
PGR_SOURCES := $(foreach room,base core wires,$(addprefix peregrine/engine/$(room)/,$(sort $(notdir $(wildcard $(PGR_ROOT)/$(room)/*.c)))))
PGR_PKGS := libsodium
