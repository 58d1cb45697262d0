# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the driver with all patterns and floors that it finds, and its unit tests.
#
#   make -f harness/build.mk              driver, and plain programs (natives), into build/bin
#   make -f harness/build.mk unit         unit tests, built and run
#   PROFILE=asan | release, BUILD=, CC=, EXTRA_CFLAGS=, EXTRA_LDFLAGS= as usual
#   TABLES_PYTHON=python3                 with pydantic 2 and PyYAML, where there is no .venv
#
# There is no list of patterns or floors: harness/patterns/NAME/*.c and harness/floors/{,*/}*.c are linked in, and their tables
# enter themselves into a section that the driver reads. AF_XDP is used through system calls.
#
# jansson (MIT), libsodium (ISC), zlib (zlib) and llhttp (MIT) are linked statically, so that a binary copied to a node needs
# libc alone. Everything but the main program, patterns and floors lives in libcadge-harness.a: the driver, and the programs
# that patterns bring (harness/apps/NAME).

HARNESS_ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
LAYERS_ROOT  := $(patsubst %/,%,$(dir $(HARNESS_ROOT)))/layers
ifeq ($(wildcard $(LAYERS_ROOT)/include/cadge/layer.h),)
LAYERS_ROOT  := layers
endif
PROFILE ?= release
BUILD   ?= build$(if $(filter asan,$(PROFILE)),/asan)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

H_WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wcast-function-type -Wvla \
	-Werror
# Aligned as layers are, and for the same reason: layers/rules.mk.
H_FLAGS := -O2 -g -fno-omit-frame-pointer -pthread -falign-functions=64 -falign-loops=32
ifeq ($(PROFILE),asan)
# A third of the processor time of all sanitized builds went into optimising these loops; of -g, reports need lines alone.
H_FLAGS += -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifneq ($(PROFILE),release)
$(error PROFILE is release or asan, not $(PROFILE))
endif
H_INCLUDES := -I$(HARNESS_ROOT)/driver -I$(HARNESS_ROOT)/apps -I$(LAYERS_ROOT)/include -I$(BUILD)/obj/harness
H_CFLAGS = -std=c11 -D_GNU_SOURCE $(H_FLAGS) $(H_WARNINGS) $(H_INCLUDES) $(EXTRA_CFLAGS)
H_LDFLAGS = $(H_FLAGS) $(EXTRA_LDFLAGS)
H_LIBS := -l:libjansson.a -l:libsodium.a -l:libz.a -ldl -lm
# llhttp comes as a library (libllhttp-dev), or, on Debian 12, as sources (node-llhttp).
LLHTTP_SOURCES ?= $(if $(wildcard /usr/include/llhttp.h),,/usr/share/llhttp)
H_LLHTTP := $(sort $(wildcard $(LLHTTP_SOURCES:%=%/*.c)))
H_LIBS += $(if $(LLHTTP_SOURCES),,-l:libllhttp.a)
H_INCLUDES += $(if $(LLHTTP_SOURCES),-isystem /usr/share/include/llhttp)
H_QUIET := $(if $(V),,@)

# The objects are rebuilt when compiler or flags change, version.o when the version or the revision does.
H_OBJ := $(BUILD)/obj/harness
H_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' $(HARNESS_ROOT)/../pyproject.toml 2>/dev/null)
H_REVISION := $(shell git -C $(HARNESS_ROOT) describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)
# A tree without its history (an archive, a copy on a node) may carry its revision in a file or a variable.
REVISION ?= $(or $(H_REVISION),$(shell cat $(HARNESS_ROOT)/../REVISION 2>/dev/null),unknown)

.PHONY: all driver natives tools unit unit-programs HARNESS_FORCE
all: driver natives
HARNESS_FORCE:

$(H_OBJ)/flags: HARNESS_FORCE
	@mkdir -p $(@D)
	@line='$(CC) $(H_CFLAGS) $(H_LDFLAGS)'; \
	if [ "$$(cat $@ 2>/dev/null)" != "$$line" ]; then echo "$$line" >$@; fi
$(H_OBJ)/cadge-version.h: HARNESS_FORCE
	@mkdir -p $(@D)
	@text='#define CADGE_VERSION "$(or $(H_VERSION),0)"|#define CADGE_REVISION "$(REVISION)"|#define CADGE_PROFILE "$(if \
		$(filter asan,$(PROFILE)), asan)"'; \
	text=$$(printf '%s' "$$text" | tr '|' '\n'); \
	if [ "$$(cat $@ 2>/dev/null)" != "$$text" ]; then printf '%s\n' "$$text" >$@; fi

H_MAIN := $(HARNESS_ROOT)/driver/main.c
# Folders of an application that hold programs of their own.
A_PROGRAMS := $(wildcard $(foreach room,tests fuzz soak,$(HARNESS_ROOT)/apps/*/$(room)/*.c))
H_SOURCES := $(filter-out $(H_MAIN) $(HARNESS_ROOT)/driver/tests/% $(A_PROGRAMS),$(sort $(wildcard $(HARNESS_ROOT)/driver/*.c \
	$(HARNESS_ROOT)/driver/*/*.c $(HARNESS_ROOT)/apps/*/*.c $(HARNESS_ROOT)/apps/*/*/*.c)))
H_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(H_SOURCES)) \
	$(patsubst $(LLHTTP_SOURCES)/%.c,$(H_OBJ)/llhttp/%.o,$(H_LLHTTP))
H_LIBRARY := $(BUILD)/libcadge-harness.a

# Patterns and floors are linked as objects: nothing names them, so an archive would leave them out.
# A pattern's folder is called as its table is, and so are its two files.
$(foreach own,$(filter %/,$(wildcard $(HARNESS_ROOT)/patterns/*/)),$(foreach ending,.c .pattern.yml,$(if \
	$(wildcard $(own)$(notdir $(own:/=))$(ending)),,$(error $(own) holds no $(notdir $(own:/=))$(ending): a pattern is a folder \
	with NAME.c and NAME.pattern.yml))))
P_SOURCES := $(sort $(wildcard $(HARNESS_ROOT)/patterns/*/*.c $(HARNESS_ROOT)/floors/*.c \
	$(HARNESS_ROOT)/floors/*/*.c))
# The socket of raw frames is that of Peregrine's engine: one file that stands alone.
P_XDP_SOCKET := $(H_OBJ)/engine/wires/xdp_socket.o
P_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(P_SOURCES)) $(P_XDP_SOCKET)
# The tests' own.
T_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(sort $(wildcard $(HARNESS_ROOT)/driver/tests/patterns/*/*.c)))

# What C code knows of a pattern's file, NAME.params.h, is made of that file.
TABLES_PYTHON ?= $(HARNESS_ROOT)/../.venv/bin/python
TABLES_CODE := $(HARNESS_ROOT)/../results/src
P_FILES := $(sort $(wildcard $(HARNESS_ROOT)/patterns/*/*.pattern.yml $(HARNESS_ROOT)/floors/*.pattern.yml \
	$(HARNESS_ROOT)/driver/tests/patterns/*/*.pattern.yml))
P_TABLES := $(foreach file,$(P_FILES),$(H_OBJ)/params/$(notdir $(file:.pattern.yml=.params.h)))

$(H_OBJ)/params/made: $(P_FILES) $(wildcard $(TABLES_CODE)/cadge_results/*.py $(TABLES_CODE)/cadge_results/*/*.py)
	@command -v '$(TABLES_PYTHON)' >/dev/null || { echo 'the tables of the patterns are made by $(TABLES_PYTHON), which is not' \
		'there: run make setup, or name a Python with pydantic 2 and PyYAML: TABLES_PYTHON=python3' >&2; exit 1; }
	$(H_QUIET)PYTHONPATH=$(TABLES_CODE) '$(TABLES_PYTHON)' -m cadge_results.parameter_tables $(@D) $(P_FILES)
	@touch $@
$(P_TABLES): $(H_OBJ)/params/made
	@:
$(P_OBJECTS) $(T_OBJECTS): private H_INCLUDES += -I$(H_OBJ)/params
$(P_OBJECTS) $(T_OBJECTS): | $(H_OBJ)/params/made
$(H_OBJ)/driver/base/version.o: $(H_OBJ)/cadge-version.h
$(H_OBJ)/floors/%.o $(H_OBJ)/driver/tests/test_pieces.o: private H_INCLUDES += -I$(LAYERS_ROOT) -I$(HARNESS_ROOT)/floors
$(H_OBJ)/patterns/%.o: private H_INCLUDES += -I$(HARNESS_ROOT)/patterns -I$(HARNESS_ROOT)/driver/tests
$(P_XDP_SOCKET): $(LAYERS_ROOT)/peregrine/engine/wires/xdp_socket.c $(H_OBJ)/flags
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_CFLAGS) -MMD -MP -c $< -o $@
# Another project's source: its warnings are not ours to mend.
$(H_OBJ)/llhttp/%.o: $(LLHTTP_SOURCES)/%.c $(H_OBJ)/flags
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_CFLAGS) -w -c $< -o $@
$(H_OBJ)/%.o: $(HARNESS_ROOT)/%.c $(H_OBJ)/flags
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_CFLAGS) -MMD -MP -c $< -o $@
$(H_LIBRARY): $(H_OBJECTS)
	@rm -f $@
	$(H_QUIET)$(AR) rcs $@ $^
driver: $(BUILD)/bin/cadge-driver
# One that goes is no newer file: the list of what is linked is.
$(H_OBJ)/linked: HARNESS_FORCE
	@mkdir -p $(@D)
	@if [ "$$(cat $@ 2>/dev/null)" != '$(P_OBJECTS)' ]; then echo '$(P_OBJECTS)' >$@; fi
$(BUILD)/bin/cadge-driver: $(H_OBJ)/driver/main.o $(P_OBJECTS) $(H_LIBRARY) $(H_OBJ)/linked
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $(filter-out %/linked,$^) $(H_LIBS)
	$(if $(CADGE_PROGRESS),@echo "built  $(@F)")

# Plain programs, each as its library's manual writes it, beside which cadge crosscheck sets layers: harness/native/NAME.c is
# native-NAME. One whose library is not here is not built.
N_PKGS_mpi := ompi-c
PKG_CONFIG ?= pkg-config
define native-rule
ifeq ($(if $(N_PKGS_$(1)),$(shell $(PKG_CONFIG) --exists $(N_PKGS_$(1)) 2>/dev/null || echo absent)),)
natives: $(BUILD)/bin/native-$(1)
$(BUILD)/bin/native-$(1): $(HARNESS_ROOT)/native/$(1).c $(wildcard $(HARNESS_ROOT)/native/*.h) $(H_OBJ)/flags
	@mkdir -p $$(@D)
	$(H_QUIET)$(CC) $(H_CFLAGS) -o $$@ $$< $(if $(N_PKGS_$(1)),$$(shell $(PKG_CONFIG) --cflags --libs $(N_PKGS_$(1)) | \
		sed 's/-I/-isystem /g'))
endif
endef
$(foreach source,$(wildcard $(HARNESS_ROOT)/native/*.c),$(eval $(call native-rule,$(notdir $(source:.c=)))))

# Unit tests: each test_*.c of harness/driver/tests, harness/patterns/NAME/tests and harness/apps/NAME/tests is a program that
# prints TAP; tool_*.c are programs that other tests run.
A_TESTS := $(foreach source,$(sort $(wildcard $(HARNESS_ROOT)/apps/*/tests/test_*.c)),$(BUILD)/tests/driver-$(notdir \
	$(patsubst %/tests/,%,$(dir $(source))))-$(notdir $(source:.c=)))
O_TESTS := $(sort $(wildcard $(HARNESS_ROOT)/patterns/*/tests/test_*.c))
pattern-test = $(BUILD)/tests/driver-pattern-$(notdir $(patsubst %/tests/,%,$(dir $(1))))-$(notdir $(1:.c=))
H_TESTS := $(patsubst $(HARNESS_ROOT)/driver/tests/%.c,$(BUILD)/tests/driver-%,$(sort \
	$(wildcard $(HARNESS_ROOT)/driver/tests/test_*.c))) $(A_TESTS) $(foreach source,$(O_TESTS),$(call pattern-test,$(source)))
H_TOOLS := $(patsubst $(HARNESS_ROOT)/driver/tests/%.c,$(BUILD)/tests/driver-%,$(sort \
	$(wildcard $(HARNESS_ROOT)/driver/tests/tool_*.c)))
# Whatever else stands there is shared by them.
H_TESTING := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(filter-out %.h $(wildcard $(HARNESS_ROOT)/driver/tests/test_*.c \
	$(HARNESS_ROOT)/driver/tests/tool_*.c),$(wildcard $(HARNESS_ROOT)/driver/tests/*.c)))
$(BUILD)/tests/driver-%: $(H_OBJ)/driver/tests/%.o $(H_TESTING) $(P_OBJECTS) $(T_OBJECTS) $(H_LIBRARY)
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $^ $(H_LIBS)
define pattern-test-rule
$(call pattern-test,$(1)): $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(1)) $(H_TESTING) $(P_OBJECTS) $(T_OBJECTS) $(H_LIBRARY)
	@mkdir -p $$(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $$@ $$^ $(H_LIBS)
endef
$(foreach source,$(O_TESTS),$(eval $(call pattern-test-rule,$(source))))
define app-test-rule
$(1): $(H_OBJ)/$(patsubst $(HARNESS_ROOT)/%.c,%.o,$(2)) $(H_LIBRARY)
	@mkdir -p $$(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $$@ $$^ $(H_LIBS)
endef
$(foreach source,$(sort $(wildcard $(HARNESS_ROOT)/apps/*/tests/test_*.c)),$(eval $(call app-test-rule,$(BUILD)/tests/driver-$(notdir \
	$(patsubst %/tests/,%,$(dir $(source))))-$(notdir $(source:.c=)),$(source))))
$(H_OBJ)/apps/%.o: private H_INCLUDES += -I$(HARNESS_ROOT)/driver/tests
# The cluster web server whose nodes are killed and come back, for longer than unit tests run.
S_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(sort $(wildcard $(HARNESS_ROOT)/apps/press/soak/*.c)))
$(BUILD)/tests/press-soak: $(S_OBJECTS) $(H_LIBRARY)
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $^ $(H_LIBS)
# A driver with the patterns of the tests.
$(BUILD)/tests/cadge-driver: $(H_OBJ)/driver/main.o $(P_OBJECTS) $(T_OBJECTS) $(H_LIBRARY)
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $^ $(H_LIBS)
# What other tests run, and the one unit test that is timed too finely for sanitizers.
# A program whose test is gone would still be run, by whoever runs all that lie there.
H_STRANGERS := $(filter-out $(H_TESTS) $(H_TOOLS),$(wildcard $(BUILD)/tests/driver-*))
tools: $(H_TOOLS) $(BUILD)/tests/cadge-driver $(BUILD)/tests/press-soak $(BUILD)/tests/driver-test_attempt
	$(if $(H_STRANGERS),@rm -f $(H_STRANGERS))
unit-programs: $(H_TESTS) tools
unit: unit-programs
	@status=0; for program in $(H_TESTS); do \
		echo "# $$program"; timeout 120 $$program; code=$$?; \
		if [ $$code -ne 0 ] && [ $$code -ne 77 ]; then status=1; echo "# $$program: status $$code"; fi; \
	done; exit $$status

-include $(sort $(shell find $(H_OBJ) -name '*.d' 2>/dev/null))
