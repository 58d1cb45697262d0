# SPDX-License-Identifier: BSD-3-Clause
#
# Providers: several versions of one library side by side. Each is a folder <library>-<version> in PROVIDERS with a
# provider.mk, written by `cadge provider add`, that sets
#
#   PROVIDER_LIBRARY, PROVIDER_VERSION   the two parts of the folder's name, e.g. mpich and 5.0.2
#   PROVIDER_PKGS     the pkg-config packages of a layer whose place it takes, e.g. ompi-c
#   PROVIDER_CFLAGS, PROVIDER_LIBS       in place of what pkg-config says of these
#   PROVIDER_RPATH    where the library lies: absolute, or relative to the folder, which goes to hosts beside the layers;
#                     empty where the loader finds it by itself
#
# A layer is built once for each provider of one of its packages, as <layer>@<label>: against its headers, and so that it and
# what it needs are found there before anywhere else. The label is the version where the layer is named after the library
# (native-ucx@1.22.0), else library and version (mpi-p2p@mpich-5.0.2).

# The same whatever is built: sanitized layers stand on the same libraries.
PROVIDERS ?= $(abspath $(LAYERS_ROOT)/..)/build/providers

# A folder that is being made, or whose making was cut off, is none.
PROVIDER_NAMES := $(filter-out %.part,$(sort $(patsubst $(PROVIDERS)/%/provider.mk,%,$(wildcard $(PROVIDERS)/*/provider.mk))))

# $(1) name of the provider
define provider-read
PROVIDER_LIBRARY :=
PROVIDER_VERSION :=
PROVIDER_PKGS :=
PROVIDER_CFLAGS :=
PROVIDER_LIBS :=
PROVIDER_RPATH :=
include $(PROVIDERS)/$(1)/provider.mk
ifneq ($$(PROVIDER_LIBRARY)-$$(PROVIDER_VERSION),$(1))
$$(error $(PROVIDERS)/$(1)/provider.mk is of $$(PROVIDER_LIBRARY)-$$(PROVIDER_VERSION), not of $(1))
endif
LIBRARY_OF_$(1) := $$(PROVIDER_LIBRARY)
VERSION_OF_$(1) := $$(PROVIDER_VERSION)
PKGS_OF_$(1) := $$(PROVIDER_PKGS)
CFLAGS_OF_$(1) := $$(PROVIDER_CFLAGS)
LIBS_OF_$(1) := $$(PROVIDER_LIBS) $$(foreach path,$$(PROVIDER_RPATH),$$(call rpath-option,$$(call rpath-of,$(1),$$(path))))
endef

# $(1) a path relative to the folder of layers: the loader puts that folder for the word ORIGIN. Or an absolute one.
dollar := $$
rpath-of = $(if $(filter /%,$(2)),$(2),$(dollar)ORIGIN/$(shell realpath -m --relative-to='$(BUILD)/layers' '$(PROVIDERS)/$(1)/$(2)'))
# The old kind of run path: the loader looks there before LD_LIBRARY_PATH, and for what the library needs in turn as well.
rpath-option = -Wl,--disable-new-dtags '-Wl,-rpath,$(1)'

$(foreach p,$(PROVIDER_NAMES),$(eval $(call provider-read,$(p))))

# $(1) layer: its names on all providers
layer-variants = $(foreach p,$(PROVIDER_NAMES),$(if $(filter $(PKGS_OF_$(p)),$(PKGS_$(1))),$(1)@$(call provider-label,$(1),$(p))))
provider-label = $(if $(filter $(LIBRARY_OF_$(2)),$(lastword $(subst -, ,$(1)))),$(VERSION_OF_$(2)),$(2))
# $(1) layer@label: its provider
variant-provider = $(firstword $(foreach p,$(PROVIDER_NAMES),$(if $(filter \
	$(1),$(call layer-base,$(1))@$(call provider-label,$(call layer-base,$(1)),$(p))),$(p))))
# $(1) layer or layer@label: its provider.mk; nothing for a layer alone
provider-file = $(if $(PROVIDER_OF_$(1)),$(PROVIDERS)/$(PROVIDER_OF_$(1))/provider.mk)

# As layer-plan for a layer on a provider: $(1) layer@label, $(2) layer, $(3) provider. The provider's headers come first, and
# the layer's other packages are pkg-config's.
define variant-plan
PROVIDER_OF_$(1) := $(3)
SOURCES_$(1) := $$(SOURCES_$(2))
PKGS_$(1) := $$(filter-out $$(PKGS_OF_$(3)),$$(PKGS_$(2)))
MISSING_$(1) := $$(call layer-missing,$$(PKGS_$(1)),$$(HEADERS_$(2)))
CFLAGS_$(1) := $$(CFLAGS_OF_$(3)) $$(OWN_CFLAGS_$(2)) $$(call packages-cflags,$$(PKGS_$(1)))
LIBS_$(1) := $$(OWN_LIBS_$(2)) $$(LIBS_OF_$(3)) $$(call packages-libs,$$(PKGS_$(1)))
SET_$(1) := $(3)+$$(call object-set,$$(OWN_CFLAGS_$(2)),$$(PKGS_$(1)))
OBJECTS_$(1) := $$(call objects-of,$$(SET_$(1)),$$(SOURCES_$(1)))
endef
