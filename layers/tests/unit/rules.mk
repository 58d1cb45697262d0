# SPDX-License-Identifier: BSD-3-Clause
#
# Unit tests: each layers/tests/unit/<name>.c is a program (TAP on stdout; exit 0 passed, 1 failed, 77 skipped), and each
# <name>.sh a script of the same kind. An engine that is of use without Cadge keeps its own beside it, in
# layers/<style>/engine/tests/; their names begin with the style. An optional <name>.mk beside a program sets TEST_SOURCES (what
# else to link, relative to layers/), TEST_PKGS, TEST_CFLAGS and TEST_LIBS; a program whose package is missing is not built. Programs find
# the layers through the environment: CADGE_MODULES is the folder of the built modules.
# layers/tests/<folder>/<name>.wires.mk is a program on each of layers/wire/<wire>, <name>_<wire>: it is read once with each in WIRE;
# UNIT_WIRES may name fewer.

UNIT_SECONDS ?= 120
UNIT_FILES := $(sort $(wildcard $(LAYERS_ROOT)/tests/unit/*.c $(LAYERS_ROOT)/*/engine/tests/*.c))
UNIT_SCRIPTS ?= $(sort $(wildcard $(LAYERS_ROOT)/tests/unit/*.sh))
UNIT_PROGRAMS :=

# unit/<name>.c is <name>; <style>/engine/tests/<name>.c is <style>-<name>
unit-name = $(subst /engine/tests/,-,$(patsubst tests/unit/%,%,$(patsubst $(LAYERS_ROOT)/%.c,%,$(1))))
WIRES := $(patsubst $(LAYERS_ROOT)/wire/%/wire.mk,%,$(sort $(wildcard $(LAYERS_ROOT)/wire/*/wire.mk)))
UNIT_WIRES_FILES := $(sort $(wildcard $(LAYERS_ROOT)/tests/*/*.wires.mk))
UNIT_ON_WIRES := $(patsubst %.wires.mk,%,$(notdir $(UNIT_WIRES_FILES)))
UNIT_WIRES ?= $(WIRES)
UNIT_TESTS ?= $(foreach f,$(UNIT_FILES),$(call unit-name,$(f))) $(foreach n,$(UNIT_ON_WIRES),$(addprefix $(n)_,$(UNIT_WIRES)))
unit-file = $(firstword $(foreach f,$(UNIT_FILES),$(if $(filter $(1),$(call unit-name,$(f))),$(f))))
unit-without-wire = $(strip $(foreach n,$(UNIT_ON_WIRES),$(if $(filter $(addprefix $(n)_,$(WIRES)),$(1)),$(n))))

# $(1) name, $(2) its file; without one it is a test on a wire
define unit-read
TEST_SOURCES :=
TEST_PKGS :=
TEST_CFLAGS :=
TEST_LIBS :=
$(if $(2),-include $(2:.c=.mk),$(call unit-on-wire,$(call unit-without-wire,$(1)),$(1)))
UNIT_SOURCES_$(1) := $(patsubst $(LAYERS_ROOT)/%,%,$(2)) $$(TEST_SOURCES)
UNIT_PKGS_$(1) := $$(TEST_PKGS)
UNIT_SET_$(1) := $$(call object-set,$$(TEST_CFLAGS),$$(TEST_PKGS))
UNIT_CFLAGS_$(1) := $$(TEST_CFLAGS) $$(call packages-cflags,$$(TEST_PKGS))
UNIT_LIBS_$(1) := $$(TEST_LIBS) $$(call packages-libs,$$(TEST_PKGS))
ifeq ($$(call packages-missing,$$(TEST_PKGS)),)
UNIT_PROGRAMS += $(BUILD)/tests/unit-$(1)
endif
endef

# $(1) its name without the wire, $(2) with it
define unit-on-wire
WIRE := $(patsubst $(1)_%,%,$(2))
include $(filter %/$(1).wires.mk,$(UNIT_WIRES_FILES))
TEST_SOURCES += tests/ranks/on_wire.c $$(WIRE_TEST_SOURCES)
TEST_PKGS := $$(WIRE_PKGS)
TEST_CFLAGS := $$(WIRE_CFLAGS)
TEST_LIBS := $$(WIRE_TEST_LIBS)
endef

define unit-rules
$(call object-rules,$(UNIT_SET_$(1)),$(UNIT_SOURCES_$(1)),$(UNIT_CFLAGS_$(1)),$(UNIT_PKGS_$(1)))
$(BUILD)/tests/unit-$(1): $(call objects-of,$(UNIT_SET_$(1)),$(UNIT_SOURCES_$(1)))
	@mkdir -p $$(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $$@ $$^ $(UNIT_LIBS_$(1)) -ldl
endef

$(foreach n,$(UNIT_TESTS),$(eval $(call unit-read,$(n),$(call unit-file,$(n)))))
$(foreach n,$(UNIT_TESTS),$(eval $(call unit-rules,$(n))))

# A program whose test is gone would still be run, by whoever runs all that lie there.
UNIT_STRANGERS := $(if $(filter file,$(origin UNIT_TESTS)),$(filter-out $(UNIT_PROGRAMS),$(wildcard $(BUILD)/tests/unit-*)))
unit-programs: $(UNIT_PROGRAMS)
	$(if $(UNIT_STRANGERS),@rm -f $(UNIT_STRANGERS))

unit: layers unit-programs
	@failed=; for test in $(UNIT_PROGRAMS) $(UNIT_SCRIPTS); do \
		echo "# $$test"; \
		CADGE_MODULES=$(abspath $(BUILD))/layers CADGE_LAYERS_ROOT=$(abspath $(LAYERS_ROOT)) CADGE_CC='$(CC)' \
		timeout --kill-after=5 $(UNIT_SECONDS) $$test; status=$$?; \
		if [ $$status -eq 77 ]; then echo "# skipped: $$test"; \
		elif [ $$status -ne 0 ]; then echo "# failed with $$status: $$test"; failed="$$failed $$test"; fi; \
	done; if [ -n "$$failed" ]; then echo "unit tests failed:$$failed"; exit 1; fi
