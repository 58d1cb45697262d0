# SPDX-License-Identifier: BSD-3-Clause
# Verbs only. What they do stands in ci/, layers/build.mk, harness/build.mk and in the command `cadge`.
.DEFAULT_GOAL := help
.PHONY: help setup build sweep report test check bench long fresh conformance new-layer new-pattern site clean
SHELL := /bin/bash

SWEEP ?= default
export SWEEP TESTBED LAYERS INVENTORY TUNE SETUP LAYER NAME RUN

cadge := .venv/bin/cadge
# the shell reads their values from the environment, whatever characters are in them
options := $(if $(TESTBED),--testbed "$$TESTBED") $(if $(INVENTORY),--inventory "$$INVENTORY") \
	$(if $(LAYERS),--layers "$$LAYERS") $(if $(filter yes,$(TUNE)),--tune)
jobs := $(shell nproc 2>/dev/null || echo 1)
build := $(MAKE) --no-print-directory -j$(jobs) -f

help: ## list the targets
	@echo 'make VERB [NAME=VALUE ...]'; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  SWEEP=smoke|default|full|PATH   the sweep (default: default)    LAYERS="a b"     a subset of the layers'
	@echo '  TESTBED=local|emulated          default: emulated where it can be  INVENTORY=PATH   the same on a cluster'
	@echo '  SETUP=no                        install nothing                 TUNE=yes         tune the nodes, and restore them'

setup: ## install what a sweep needs (apt, Python), having shown what that is
	@ci/setup sweep

build: setup ## build the driver and every layer whose library is here
	@$(build) layers/build.mk
	@$(build) harness/build.mk
	@$(cadge) patterns --check

sweep: build ## set-up, build, testbed, sweep over layers of every style, store, report: one command
	@$(cadge) run --sweep "$$SWEEP" $(options)

report: ## make the report of the last campaign again (RUN=ID for another)
	@$(cadge) report $(if $(RUN),"$$RUN")

test: ## set-up for tests, then every test, in its short form: minutes
	@ci/setup test
	@ci/test

check: ## linters, types and the rules of the architecture
	@ci/setup test
	@ci/check

bench: ## the figures: Cadge beside native tools, and where the difference lies
	@ci/setup bench
	@$(MAKE) --no-print-directory build SETUP=no
	@ci/bench

long: ## the long jobs: 100 kills, conformance in full, an hour of fuzzing, full sweep
	@ci/setup test
	@ci/long

fresh: ## the README's commands on fresh machines: Debian 12 and 13, root, sudo user, no sudo (needs root)
	@ci/fresh

conformance: ## one layer through the conformance suite: LAYER=name (PROFILE=asan: under sanitizers)
	@ci/conformance "$$LAYER"

new-layer: ## the three files of a new layer, ready to build and to conform: NAME=style-substrate
	@ci/new-layer "$$NAME"

new-pattern: ## the two files of a new pattern, ready to build: NAME=name
	@ci/new-pattern "$$NAME"

site: ## these pages as a site to read offline, with a reference made of the code: build/site/html
	@ci/setup site
	@build/site/venv/bin/python -m ci.site

clean: ## remove what was built; results stay
	rm -rf build
