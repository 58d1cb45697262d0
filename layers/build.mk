# SPDX-License-Identifier: BSD-3-Clause
#
# Builds every layer and shim that is found as layers/*/*.layer.yml. There is no list: a layer is three files,
# layers/<style>/<substrate>.c (or .cc), .mk and .layer.yml, and adding one edits nothing.
#
#   make -f layers/build.mk                          all layers into build/layers
#   make -f layers/build.mk LAYERS="sockets-tcp"     a subset
#   make -f layers/build.mk unit                     unit tests of layers/tests/unit, built and run
#   make -f layers/build.mk check-exports            each .so exports cadge_layer_entry and nothing else
#   PROFILE=asan | release, BUILD=, CC=, CXX=, EXTRA_CFLAGS=, EXTRA_LDFLAGS= as usual
#
# A layer's .mk sets LAYER_SOURCES (relative to layers/), LAYER_PKGS (pkg-config names, may be empty) and, if
# needed, LAYER_CFLAGS and LAYER_LIBS; for a library without pkg-config LAYER_HEADERS, headers to look for. Where a
# package or a header is missing, <layer>.absent takes the place of <layer>.so and says why in one line; the build
# stays green.

LAYERS_ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
PROFILE     ?= release
BUILD       ?= build$(if $(filter asan,$(PROFILE)),/asan)
PKG_CONFIG  ?= pkg-config

.DEFAULT_GOAL := layers
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

include $(LAYERS_ROOT)/rules.mk

# <style>-<substrate> of a layer file; the folder of the shims has the style "shim".
layer-name = $(patsubst shims-%,shim-%,$(subst /,-,$(patsubst $(LAYERS_ROOT)/%.layer.yml,%,$(1))))
layer-file = $(firstword $(foreach f,$(LAYER_FILES),$(if $(filter $(1),$(call layer-name,$(f))),$(f))))

LAYER_FILES := $(sort $(wildcard $(LAYERS_ROOT)/*/*.layer.yml))
LAYERS_ALL  := $(foreach f,$(LAYER_FILES),$(call layer-name,$(f)))
# Empty means all, as an exported but unset LAYERS arrives.
WANTED      := $(or $(strip $(LAYERS)),$(LAYERS_ALL))
LAYERS_UNKNOWN := $(filter-out $(LAYERS_ALL),$(WANTED))
ifneq ($(LAYERS_UNKNOWN),)
$(error no such layer: $(LAYERS_UNKNOWN); there are: $(LAYERS_ALL))
endif

LAYER_MODULES :=
LAYER_ABSENT  :=

# $(1) layer name, $(2) its layer file
define layer-read
LAYER_SOURCES :=
LAYER_PKGS :=
LAYER_HEADERS :=
LAYER_CFLAGS :=
LAYER_LIBS :=
include $(2:.layer.yml=.mk)
SOURCES_$(1) := $$(LAYER_SOURCES)
PKGS_$(1) := $$(LAYER_PKGS)
MISSING_$(1) := $$(strip $$(patsubst %,pkg-config finds no %;,$$(call packages-missing,$$(LAYER_PKGS))) \
	$$(patsubst %,there is no header %;,$$(call headers-missing,$$(LAYER_HEADERS))))
CFLAGS_$(1) := $$(LAYER_CFLAGS) $$(call packages-cflags,$$(LAYER_PKGS))
LIBS_$(1) := $$(LAYER_LIBS) $$(call packages-libs,$$(LAYER_PKGS))
SET_$(1) := $$(call object-set,$$(LAYER_CFLAGS),$$(LAYER_PKGS))
OBJECTS_$(1) := $$(call objects-of,$$(SET_$(1)),$$(LAYER_SOURCES))
ifeq ($$(MISSING_$(1)),)
LAYER_MODULES += $(BUILD)/layers/$(1).so
else
LAYER_ABSENT += $(BUILD)/layers/$(1).absent
endif
endef

# $(1) layer name, $(2) its layer file
define layer-rules
$(call object-rules,$(SET_$(1)),$(SOURCES_$(1)),$(CFLAGS_$(1)),$(PKGS_$(1)))
$(BUILD)/layers/$(1).so: $(OBJECTS_$(1)) $(BUILD)/obj/$(SET_$(1))/flags $(2:.layer.yml=.mk)
	@mkdir -p $$(@D)
	$(Q)$(if $(filter %.cc,$(SOURCES_$(1))),$(CXX),$(CC)) $(MODULE_LDFLAGS) -o $$@ $(OBJECTS_$(1)) $(LIBS_$(1))
	@rm -f $(BUILD)/layers/$(1).absent
# Written each time, since a package may have come or gone; touched only if the line changes.
$(BUILD)/layers/$(1).absent: FORCE
	@mkdir -p $$(@D)
	@rm -f $(BUILD)/layers/$(1).so
	@line='$(MISSING_$(1)) Debian: $(call layer-packages,$(2))'; \
	if [ "$$$$(cat $$@ 2>/dev/null)" != "$$$$line" ]; then echo "$$$$line" >$$@; fi; echo "absent $(1): $$$$line"
endef

# The Debian packages that a layer file names for the build: packages: {build: [a, b], ...}
layer-packages = $(strip $(shell sed -n 's/^packages:.*build: *\[\([^]]*\)\].*/\1/p' $(1) | tr -d ','))

$(foreach n,$(WANTED),$(eval $(call layer-read,$(n),$(call layer-file,$(n)))))
$(foreach n,$(WANTED),$(eval $(call layer-rules,$(n),$(call layer-file,$(n)))))

.PHONY: layers unit unit-programs check-exports clean-strangers list FORCE
layers: $(LAYER_MODULES) $(LAYER_ABSENT) clean-strangers

# Modules of layers that no longer exist would still be found by the driver.
clean-strangers: | $(LAYER_MODULES) $(LAYER_ABSENT)
	@for file in $(wildcard $(BUILD)/layers/*.so $(BUILD)/layers/*.absent); do \
		name=$$(basename $$file); name=$${name%.so}; name=$${name%.absent}; \
		case ' $(LAYERS_ALL) ' in *" $$name "*) ;; *) rm -f $$file;; esac; \
	done

list:
	@$(foreach n,$(LAYERS_ALL),echo $(n);)

check-exports: $(LAYER_MODULES)
	@status=0; for module in $(LAYER_MODULES); do \
		names=$$(nm -D --defined-only $$module | awk '{print $$3}' | grep -v '^__asan\|^__ubsan\|^__odr' | tr '\n' ' '); \
		if [ "$$names" = "cadge_layer_entry " ]; then echo "ok - $$module"; \
		else echo "not ok - $$module exports: $$names"; status=1; fi; \
	done; exit $$status

include $(LAYERS_ROOT)/tests/unit/rules.mk
