# SPDX-License-Identifier: BSD-3-Clause
# Verbs only. What they do stands in ci/, layers/build.mk, harness/build.mk and in the command `cadge`.
.DEFAULT_GOAL := help
verbs := help setup build sweep report test check bench long fresh conformance dist new-layer new-pattern site clean
.PHONY: $(verbs)
SHELL := /bin/bash

SWEEP ?= default
export SWEEP TESTBED LAYERS INVENTORY TUNE SETUP LAYER NAME RUN

cadge := .venv/bin/cadge
# the shell reads their values from the environment, whatever characters are in them
options := $(if $(TESTBED),--testbed "$$TESTBED") $(if $(INVENTORY),--inventory "$$INVENTORY") \
	$(if $(LAYERS),--layers "$$LAYERS") $(if $(filter yes,$(TUNE)),--tune)
jobs := $(or $(J),$(shell nproc 2>/dev/null || echo 1))
build := CADGE_PROGRESS=yes $(MAKE) --no-print-directory -j$(jobs) -f

# What each target takes on make's command line, beside what every Makefile does. Anything else is refused, with the nearest name.
of_setup := SETUP TESTBED
of_build := $(of_setup) LAYERS
of_sweep := $(of_build) SWEEP INVENTORY TUNE
of_report := RUN
of_test := SETUP
of_check := SETUP
of_bench := SETUP
of_long := SETUP
of_dist := SETUP
of_site := SETUP
of_conformance := LAYER ONLY CYCLES LOGS
of_new-layer := NAME
of_new-pattern := NAME FROM
usual := AR CC CXX CPP LD CFLAGS CPPFLAGS CXXFLAGS LDFLAGS LDLIBS EXTRA_CFLAGS EXTRA_LDFLAGS BUILD PROFILE PROVIDERS PKG_CONFIG% \
	LLHTTP_SOURCES TABLES_PYTHON REVISION UNIT_% SHELL MAKE% J Q V cadge
goals := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
# the completion of a shell asks for .DEFAULT
unknown := $(filter-out $(verbs) .%,$(goals))
ifeq ($(MAKELEVEL),0)
ifneq ($(unknown),)
$(error $(shell ci/variables --targets '$(unknown)' '$(verbs)'))
endif
endif
ifeq ($(MAKELEVEL)$(filter-out $(verbs),$(goals)),0)
taken := $(sort $(foreach goal,$(goals),$(of_$(goal))))
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
strange := $(filter-out $(usual) $(taken),$(given))
refused := $(if $(strange),$(shell ci/variables '$(goals)' '$(taken)' '$(strange)'))
$(if $(refused),$(error $(refused)))
endif

help: ## list the targets
	@echo 'make VERB [NAME=VALUE ...]'; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@printf '  %-24s %s\n' 'SWEEP=NAME|FILE' 'what to measure: smoke, default, full-calls, ... (default: default)' \
		'LAYERS="a b"' 'these layers alone' 'TESTBED=local|emulated' 'where (default: emulated where it can be)' \
		INVENTORY=FILE 'on the hosts of an Ansible inventory' TUNE=yes 'tune the nodes, and put them back' \
		CADGE_BUDGET=5min 'as --budget 5min, and so other options of cadge run' SETUP=no 'install nothing' \
		J=N 'so many compilers at a time'

setup: ## install what a sweep needs (apt, Python), and say it first
	@ci/setup sweep

build: setup ## build the driver and every layer whose library is here
	@$(build) layers/build.mk
	@$(build) harness/build.mk
	@$(cadge) patterns --check

sweep: build ## set-up, build, testbed, sweep, store, report: one command
	@$(cadge) run --sweep "$$SWEEP" $(options)

report: ## make the report of the last campaign again (RUN=ID: another)
	@$(cadge) report $(if $(RUN),"$$RUN")

test: ## set-up for tests, then every test, in its short form: minutes
	@ci/setup test
	@ci/test

check: ## linters, types and the rules of the architecture
	@ci/setup test
	@ci/check

bench: ## Cadge beside native tools, and where the difference lies
	@ci/setup bench
	@$(MAKE) --no-print-directory build SETUP=no
	@ci/bench

long: ## 100 kills, conformance in full, an hour of fuzzing, full sweeps
	@ci/setup test
	@ci/long

fresh: ## the README's commands on fresh machines, Debian 12 and 13 (root)
	@ci/fresh

conformance: ## the conformance suite: LAYER=name (PROFILE=asan: sanitizers; ONLY=TEST: one test)
	@ci/conformance "$$LAYER"

dist: setup ## a release for machines without a compiler: build/dist
	@ci/dist

new-layer: ## the three files of a new layer: NAME=style-substrate
	@ci/new-layer "$$NAME"

new-pattern: ## the two files of a new pattern: NAME=name (FROM=rpc: from that one)
	@ci/new-pattern "$$NAME" "$$FROM"

site: ## these pages, with a reference, to read offline: build/site/html
	@ci/setup site
	@build/site/venv/bin/python -m ci.site

clean: ## remove what was built; results stay
	rm -rf build
