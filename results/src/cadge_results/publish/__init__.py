# SPDX-License-Identifier: BSD-3-Clause
"""A campaign as it may be published: without names, secrets, and figures that nobody may publish."""
