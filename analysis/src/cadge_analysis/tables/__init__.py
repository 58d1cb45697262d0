# SPDX-License-Identifier: BSD-3-Clause
"""A campaign as flat tables: for exports, and for questions over many campaigns (see QUERIES.md)."""

from __future__ import annotations

from cadge_analysis.export import CELLS
from cadge_analysis.tables.facts import CAMPAIGNS, HOSTS
from cadge_analysis.tables.raw import ATTEMPTS, LAUNCHES, SAMPLES

TABLES = {table.name: table for table in (CELLS, ATTEMPTS, SAMPLES, LAUNCHES, HOSTS, CAMPAIGNS)}
