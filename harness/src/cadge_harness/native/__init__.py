# SPDX-License-Identifier: BSD-3-Clause
"""Native tools of the layers' own projects, run beside a campaign's launches: a file a tool, and what runs them."""
