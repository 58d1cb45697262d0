# SPDX-License-Identifier: BSD-3-Clause
"""Where things are measured: this machine, emulated hosts, or the hosts of an inventory."""
