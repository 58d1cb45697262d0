# SPDX-License-Identifier: BSD-3-Clause
"""The figures of pages: what each shows of a campaign, as blocks with the chart drawn."""
