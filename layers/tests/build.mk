# SPDX-License-Identifier: BSD-3-Clause
#
# The conformance suite, the adapters that must fail it, and one in C++ that must pass.
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
BAD_SOURCES := tests/bad/whole.c
# Each is one file of flaws: layers/tests/bad/<fault>.flaw.h; `nothing` has none and must pass everything.
BAD_FAULTS ?= $(patsubst %.flaw.h,%,$(notdir $(wildcard $(LAYERS_ROOT)/tests/bad/*.flaw.h)))
BAD_MODULES := $(BAD_FAULTS:%=$(BUILD)/tests/bad-%.so)
CPP_SOURCES := tests/cpp/self.cc
CPP_MODULE := $(BUILD)/tests/test-cpp.so

.PHONY: all suite
suite: $(BUILD)/bin/cadge-conformance
all: $(BUILD)/bin/cadge-conformance $(BAD_MODULES) $(CPP_MODULE)

$(eval $(call object-rules,conformance,$(CONFORMANCE_SOURCES),,))
$(BUILD)/bin/cadge-conformance: $(call objects-of,conformance,$(CONFORMANCE_SOURCES)) $(BUILD)/obj/conformance/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(call objects-of,conformance,$(CONFORMANCE_SOURCES)) -ldl

# The program that loads it is in C, and so has no part of clang's sanitizer that is for C++ alone.
CPP_CFLAGS := $(if $(findstring clang,$(CXX)),-fno-sanitize=function) -fno-sanitize=vptr
$(eval $(call object-rules,cpp,$(CPP_SOURCES),$(CPP_CFLAGS),))
$(CPP_MODULE): $(call objects-of,cpp,$(CPP_SOURCES)) $(BUILD)/obj/cpp/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(MODULE_LDFLAGS) -o $@ $(call objects-of,cpp,$(CPP_SOURCES))

# $(1) fault. Not optimised: there are many to build, and nothing is measured with them.
define bad-rules
$(call object-rules,bad-$(1),$(BAD_SOURCES),-include $(LAYERS_ROOT)/tests/bad/$(1).flaw.h -DBAD_NAME='"bad-$(1)"' -DBAD_FAULT='"$(1)"' -O0,)
$(BUILD)/tests/bad-$(1).so: $(call objects-of,bad-$(1),$(BAD_SOURCES)) $(BUILD)/obj/bad-$(1)/flags
	@mkdir -p $$(@D)
	$(Q)$(CC) $(MODULE_LDFLAGS) -o $$@ $(call objects-of,bad-$(1),$(BAD_SOURCES))
endef
$(foreach fault,$(BAD_FAULTS),$(eval $(call bad-rules,$(fault))))
