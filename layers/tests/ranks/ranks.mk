# SPDX-License-Identifier: BSD-3-Clause
# What runs tests in several processes: a test's .mk includes this and adds RANKS_SOURCES to its own.
RANKS_SOURCES := tests/ranks/run.c tests/ranks/rank.c tests/ranks/mpirun.c tests/conformance/hosts.c tests/conformance/launchers.c
