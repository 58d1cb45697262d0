# SPDX-License-Identifier: BSD-3-Clause
"""The documents of a campaign: one module a format, and what all of them stand on."""
