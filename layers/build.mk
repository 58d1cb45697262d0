# SPDX-License-Identifier: BSD-3-Clause
#
# Builds every layer and shim that is found as layers/*/*.layer.yml. There is no list: a layer is three files,
# layers/<style>/<substrate>.c (or .cc), .mk and .layer.yml, and adding one edits nothing. A style on a wire is the last of these alone.
#
#   make -f layers/build.mk                          all layers into build/layers
#   make -f layers/build.mk LAYERS="sockets-tcp"     a subset; LAYERS="mpi-p2p@mpich-5.0.2" one layer on one provider
#   make -f layers/build.mk unit                     unit tests of layers/tests/unit, built and run
#   make -f layers/build.mk check-exports            each .so exports cadge_layer_entry and nothing else
#   PROFILE=asan | release, BUILD=, CC=, CXX=, EXTRA_CFLAGS=, EXTRA_LDFLAGS= as usual
#
# A layer's .mk sets LAYER_SOURCES (relative to layers/), LAYER_PKGS (pkg-config names, may be empty) and, if
# needed, LAYER_CFLAGS and LAYER_LIBS; for a library without pkg-config LAYER_HEADERS, headers to look for. Where a
# package or a header is missing, <layer>.absent takes the place of <layer>.so and says why in one line; the build
# stays green. On each provider of one of its packages (layers/providers.mk) a layer is built once more, as
# <layer>@<label>.so; <layer>@<label>.provider beside it names the provider.

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
# A layer on a provider is <layer>@<label>.
layer-base = $(firstword $(subst @, ,$(1)))

# Empty means all, as an exported but unset LAYERS arrives; names may have commas between, as for cadge run.
ASKED := $(or $(strip $(filter-out all,$(subst $(comma), ,$(LAYERS)))),$(LAYERS_ALL))
BASES := $(sort $(foreach n,$(ASKED),$(call layer-base,$(n))))
LAYERS_UNKNOWN := $(filter-out $(LAYERS_ALL),$(BASES))
ifneq ($(LAYERS_UNKNOWN),)
$(error no such layer: $(LAYERS_UNKNOWN); there are: $(LAYERS_ALL))
endif

# A layer without a .mk of its own is its style on the wire of its name: $(1) its layer file
layer-mk = $(or $(wildcard $(1:.layer.yml=.mk)),$(dir $(1))style.mk)

# $(1) layer name, $(2) its layer file
define layer-read
LAYER_SOURCES :=
LAYER_PKGS :=
LAYER_HEADERS :=
LAYER_CFLAGS :=
LAYER_LIBS :=
WIRE := $(patsubst %.layer.yml,%,$(notdir $(2)))
include $(call layer-mk,$(2))
SOURCES_$(1) := $$(LAYER_SOURCES)
PKGS_$(1) := $$(LAYER_PKGS)
HEADERS_$(1) := $$(LAYER_HEADERS)
OWN_CFLAGS_$(1) := $$(LAYER_CFLAGS)
OWN_LIBS_$(1) := $$(LAYER_LIBS)
endef

# What a layer lacks, as one line: $(1) packages, $(2) headers
layer-missing = $(strip $(patsubst %,pkg-config finds no %;,$(call packages-missing,$(1))) \
	$(patsubst %,there is no header %;,$(call headers-missing,$(2))))

# $(1) layer name
define layer-plan
MISSING_$(1) := $$(call layer-missing,$$(PKGS_$(1)),$$(HEADERS_$(1)))
CFLAGS_$(1) := $$(OWN_CFLAGS_$(1)) $$(call packages-cflags,$$(PKGS_$(1)))
LIBS_$(1) := $$(OWN_LIBS_$(1)) $$(call packages-libs,$$(PKGS_$(1)))
SET_$(1) := $$(call object-set,$$(OWN_CFLAGS_$(1)),$$(PKGS_$(1)))
OBJECTS_$(1) := $$(call objects-of,$$(SET_$(1)),$$(SOURCES_$(1)))
endef

# $(1) layer or layer@label, $(2) its layer file
define layer-rules
$(call object-rules,$(SET_$(1)),$(SOURCES_$(1)),$(CFLAGS_$(1)),$(PKGS_$(1)),$(PROVIDER_OF_$(1)))
$(BUILD)/layers/$(1).so: $(OBJECTS_$(1)) $(BUILD)/obj/$(SET_$(1))/flags $(call layer-mk,$(2)) $(call provider-file,$(1))
	@mkdir -p $$(@D)
	$(Q)$(if $(filter %.cc,$(SOURCES_$(1))),$(CXX),$(CC)) $(MODULE_LDFLAGS) -o $$@ $(OBJECTS_$(1)) $$(LIBS_$(1))
	@rm -f $(BUILD)/layers/$(1).absent
	$(if $(CADGE_PROGRESS),@echo "built  $(1)")
# Written each time, since a package may have come or gone; touched only if the line changes.
$(BUILD)/layers/$(1).absent: FORCE
	@mkdir -p $$(@D)
	@rm -f $(BUILD)/layers/$(1).so
	@line='$(MISSING_$(1)) Debian: $(call layer-packages,$(2))'; \
	if [ "$$$$(cat $$@ 2>/dev/null)" != "$$$$line" ]; then echo "$$$$line" >$$@; fi; echo "absent $(1): $$$$line"
$(BUILD)/layers/$(1).provider: $(call provider-file,$(1))
	@mkdir -p $$(@D)
	@echo '$(PROVIDER_OF_$(1))' >$$@
endef

# The Debian packages that a layer file names for the build: packages: {build: [a, b], ...}
layer-packages = $(strip $(shell sed -n 's/^packages:.*build: *\[\([^]]*\)\].*/\1/p' $(1) | tr -d ','))

include $(LAYERS_ROOT)/providers.mk

$(foreach n,$(BASES),$(eval $(call layer-read,$(n),$(call layer-file,$(n)))))
VARIANTS := $(foreach n,$(BASES),$(call layer-variants,$(n)))
LAYERS_UNKNOWN := $(filter-out $(BASES) $(VARIANTS),$(ASKED))
ifneq ($(LAYERS_UNKNOWN),)
$(error no provider makes: $(LAYERS_UNKNOWN); there are: $(or $(VARIANTS),no layers on providers in $(PROVIDERS)))
endif
# A layer brings all that providers make of it.
WANTED := $(sort $(ASKED) $(foreach n,$(filter $(BASES),$(ASKED)),$(filter $(n)@%,$(VARIANTS))))

$(foreach n,$(filter-out $(VARIANTS),$(WANTED)),$(eval $(call layer-plan,$(n))))
$(foreach n,$(filter $(VARIANTS),$(WANTED)),$(eval $(call variant-plan,$(n),$(call layer-base,$(n)),$(call variant-provider,$(n)))))
$(foreach n,$(WANTED),$(eval $(call layer-rules,$(n),$(call layer-file,$(call layer-base,$(n))))))

LAYER_MODULES := $(foreach n,$(WANTED),$(if $(MISSING_$(n)),,$(BUILD)/layers/$(n).so))
LAYER_ABSENT  := $(foreach n,$(WANTED),$(if $(MISSING_$(n)),$(BUILD)/layers/$(n).absent))
LAYER_NOTES   := $(patsubst %,$(BUILD)/layers/%.provider,$(filter $(VARIANTS),$(WANTED)))

.PHONY: layers unit unit-programs check-exports clean-strangers list FORCE
layers: $(LAYER_MODULES) $(LAYER_ABSENT) $(LAYER_NOTES) clean-strangers

# Modules of layers, and on providers, that no longer exist would still be found by the driver.
clean-strangers: | $(LAYER_MODULES) $(LAYER_ABSENT)
	@for file in $(wildcard $(addprefix $(BUILD)/layers/*.,so absent provider)); do \
		name=$${file##*/}; name=$${name%.*}; layer=$${name%%@*}; label=$${name#"$$layer"}; label=$${label#@}; \
		case ' $(LAYERS_ALL) ' in *" $$layer "*) ;; *) rm -f "$$file"; continue;; esac; \
		[ -n "$$label" ] || continue; \
		case ' $(PROVIDER_NAMES) ' in *" $$label "* | *" $${layer#*-}-$$label "*) ;; *) rm -f "$$file";; esac; \
	done

# Layers, and then those of them on providers.
list:
	@$(foreach n,$(LAYERS_ALL) $(VARIANTS),echo $(n);)

check-exports: $(LAYER_MODULES)
	@status=0; for module in $(LAYER_MODULES); do \
		names=$$(nm -D --defined-only $$module | awk '{print $$3}' | grep -v '^__asan\|^__ubsan\|^__odr' | tr '\n' ' '); \
		if [ "$$names" = "cadge_layer_entry " ]; then echo "ok - $$module"; \
		else echo "not ok - $$module exports: $$names"; status=1; fi; \
	done; exit $$status

include $(LAYERS_ROOT)/tests/unit/rules.mk
