# SPDX-License-Identifier: BSD-3-Clause
"""A campaign as flat tables: for exports, and for questions over many campaigns (see QUERIES.md)."""

from __future__ import annotations

from cadge_analysis.export import CELLS, FAMILIES, FITS, KNEES, LEADERS, VALUES
from cadge_analysis.tables.facts import CAMPAIGNS, HOSTS
from cadge_analysis.tables.raw import ATTEMPTS, LAUNCHES, SAMPLES

_EVERY = (CELLS, VALUES, FAMILIES, LEADERS, KNEES, FITS, ATTEMPTS, SAMPLES, LAUNCHES, HOSTS, CAMPAIGNS)
TABLES = {table.name: table for table in _EVERY}
