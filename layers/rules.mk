# SPDX-License-Identifier: BSD-3-Clause
#
# Compile rules for layers and their unit tests: the same flags for all; a source is compiled once for all that use it with the
# same packages; rebuilt when the compiler, a flag or a package's version changes. Needs LAYERS_ROOT, BUILD, PROFILE, PKG_CONFIG.

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wcast-function-type -Wvla -Werror
C_WARNINGS := -Wstrict-prototypes -Wmissing-prototypes
ENGINE_CFLAGS :=
# Functions and loops begin on lines of their own, so that a change elsewhere moves less of what is measured.
COMMON_FLAGS := -O2 -g -fno-omit-frame-pointer -fvisibility=hidden -fPIC -pthread -falign-functions=64 -falign-loops=32
ifeq ($(PROFILE),asan)
# Not optimised, since that compiles in less than half of the time; but for engines, whose unit tests compute. Of -g, reports need
# lines alone.
COMMON_FLAGS += -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
ENGINE_CFLAGS := -O1
else ifneq ($(PROFILE),release)
$(error PROFILE is release or asan, not $(PROFILE))
endif

INCLUDES := -I$(LAYERS_ROOT)/include -I$(LAYERS_ROOT)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(COMMON_FLAGS) $(WARNINGS) $(C_WARNINGS) $(INCLUDES) $(EXTRA_CFLAGS)
ALL_CXXFLAGS = -std=c++17 -D_GNU_SOURCE $(COMMON_FLAGS) $(WARNINGS) $(INCLUDES) $(EXTRA_CFLAGS)
# Clang links its sanitizer runtime into programs only, gcc into both: modules leave those symbols undefined.
ALL_LDFLAGS = $(COMMON_FLAGS) $(EXTRA_LDFLAGS)
# A module without one of its functions is found when it is linked, not when it is loaded.
MODULE_LDFLAGS = $(ALL_LDFLAGS) -shared -Wl,--version-script=$(LAYERS_ROOT)/exports.map $(if $(filter asan,$(PROFILE)),,-Wl$(comma)-z$(comma)defs)
comma := ,
Q := $(if $(V),,@)

# What a command prints, asked once a run of make, however many layers ask: $(1). Its name as a variable has no :, = or #.
empty :=
hash := \#
asked = $(call asked-as,asked-$(subst $(empty) $(empty),+,$(subst :,;,$(subst =,;,$(subst $(hash),;,$(1))))),$(1))
asked-as = $(if $(filter undefined,$(origin $(1))),$(eval $(1) := $$(shell $$(2))))$($(1))

# Results of pkg-config. Library headers are not ours to warn about.
packages-missing = $(strip $(foreach p,$(1),$(if $(call asked,$(PKG_CONFIG) --exists '$(p)' && echo yes),,$(p))))
# Headers that the compiler does not find, for libraries without pkg-config.
headers-missing = $(strip $(foreach h,$(1),$(if $(call asked,echo '$(hash)include <$(h)>' | $(CC) -E -x c - >/dev/null 2>&1 && \
	echo yes),,$(h))))
packages-cflags = $(if $(strip $(1)),$(patsubst -I%,-isystem %,$(call asked,$(PKG_CONFIG) --cflags $(strip $(1)) 2>/dev/null)))
packages-libs = $(if $(strip $(1)),$(call asked,$(PKG_CONFIG) --libs $(strip $(1)) 2>/dev/null))
packages-versions = $(if $(strip $(1)),$(call asked,$(PKG_CONFIG) --modversion $(strip $(1)) 2>/dev/null))

# The set that the objects of a module belong to: $(1) flags of its own, $(2) packages. Whoever uses the same packages with the
# same flags shares its objects.
object-set = $(subst $(empty) $(empty),+,$(or $(strip $(2)),plain))$(if $(strip $(1)),-$(firstword $(call asked,echo '$(strip $(1))' | cksum)))

# What a provider's file is at the moment: headers that came in place of others are newer than it was.
provider-stamp = $(if $(1), $(1) $(shell stat -c '%Y %s' '$(PROVIDERS)/$(1)/provider.mk'))

# $(1) set, $(2) sources relative to layers/
objects-of = $(foreach s,$(2),$(BUILD)/obj/$(1)/$(subst /,_,$(basename $(s))).o)

# $(1) set, $(2) sources, $(3) further flags, $(4) packages, $(5) provider, if any: what else the objects were made for
define object-rules
ifndef SEEN_$(BUILD)/obj/$(1)/flags
SEEN_$(BUILD)/obj/$(1)/flags := yes
$(BUILD)/obj/$(1)/flags: FORCE
	@mkdir -p $$(@D)
	@line='$(CC) $(CXX) $(ALL_CFLAGS) $(ALL_LDFLAGS)$(ENGINE_CFLAGS) $(3) $(call packages-versions,$(4))$(call provider-stamp,$(5))'; \
	if [ "$$$$(cat $$@ 2>/dev/null)" != "$$$$line" ]; then echo "$$$$line" >$$@; fi
endif
$(foreach s,$(2),$(call one-object,$(1),$(s),$(3)))
endef

# $(1) set, $(2) one source, $(3) further flags
define one-object
ifndef SEEN_$(call objects-of,$(1),$(2))
SEEN_$(call objects-of,$(1),$(2)) := yes
$(call objects-of,$(1),$(2)): $(LAYERS_ROOT)/$(2) $(BUILD)/obj/$(1)/flags
	@mkdir -p $$(@D)
	$(Q)$(if $(filter %.cc,$(2)),$(CXX) $(ALL_CXXFLAGS),$(CC) $(ALL_CFLAGS) $(if $(findstring /engine/,$(2)),$(ENGINE_CFLAGS))) $(3) -MMD -MP -c $$< -o $$@
-include $(patsubst %.o,%.d,$(call objects-of,$(1),$(2)))
endif

endef

FORCE:
