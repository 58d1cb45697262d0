# SPDX-License-Identifier: BSD-3-Clause
"""Publishing: a static site of campaigns, with their reports and data, that names nobody."""
