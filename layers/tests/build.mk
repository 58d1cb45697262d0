# SPDX-License-Identifier: BSD-3-Clause
#
# The conformance suite and the adapters that must fail it.
#
#   make -f layers/tests/build.mk       build/bin/cadge-conformance and build/tests/bad-*.so
#   make -f layers/tests/build.mk suite   the first alone
#   make -f layers/tests/build.mk BAD_FAULTS="nothing drops"   only these adapters
#   PROFILE=asan | release, BUILD=, CC=, EXTRA_CFLAGS=, EXTRA_LDFLAGS= as for the layers

LAYERS_ROOT := $(patsubst %/tests/,%,$(dir $(lastword $(MAKEFILE_LIST))))
PROFILE     ?= release
BUILD       ?= build$(if $(filter asan,$(PROFILE)),/asan)
PKG_CONFIG  ?= pkg-config

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

include $(LAYERS_ROOT)/rules.mk

CONFORMANCE_SOURCES := $(sort $(patsubst $(LAYERS_ROOT)/%,%,$(wildcard $(LAYERS_ROOT)/tests/conformance/*.c)))
BAD_SOURCES := $(sort $(patsubst $(LAYERS_ROOT)/%,%,$(wildcard $(LAYERS_ROOT)/tests/bad/*.c)))
# Each is one file of flaws: layers/tests/bad/<fault>.flaw.h; `nothing` has none and must pass everything.
BAD_FAULTS ?= $(patsubst %.flaw.h,%,$(notdir $(wildcard $(LAYERS_ROOT)/tests/bad/*.flaw.h)))
BAD_MODULES := $(BAD_FAULTS:%=$(BUILD)/tests/bad-%.so)

.PHONY: all suite
suite: $(BUILD)/bin/cadge-conformance
all: $(BUILD)/bin/cadge-conformance $(BAD_MODULES)

$(eval $(call object-rules,conformance,$(CONFORMANCE_SOURCES),,))
$(BUILD)/bin/cadge-conformance: $(call objects-of,conformance,$(CONFORMANCE_SOURCES)) $(BUILD)/obj/conformance/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(call objects-of,conformance,$(CONFORMANCE_SOURCES)) -ldl

# $(1) fault. Not optimised: there are many to build, and nothing is measured with them.
define bad-rules
$(call object-rules,bad-$(1),$(BAD_SOURCES),-include $(LAYERS_ROOT)/tests/bad/$(1).flaw.h -DBAD_NAME='"bad-$(1)"' -DBAD_FAULT='"$(1)"' -O0,)
$(BUILD)/tests/bad-$(1).so: $(call objects-of,bad-$(1),$(BAD_SOURCES)) $(BUILD)/obj/bad-$(1)/flags
	@mkdir -p $$(@D)
	$(Q)$(CC) $(MODULE_LDFLAGS) -o $$@ $(call objects-of,bad-$(1),$(BAD_SOURCES))
endef
$(foreach fault,$(BAD_FAULTS),$(eval $(call bad-rules,$(fault))))
