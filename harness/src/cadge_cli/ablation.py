# SPDX-License-Identifier: BSD-3-Clause
"""What each optimisation of a layer is worth: the table after `cadge run --sweep ablate-NAME`, and of a stored one."""

from __future__ import annotations

from typing import Any

from cadge_cli.output import table
from cadge_results import Campaign

PREFIX = "ablate-"
"""How sweeps begin that are made for this table."""


def ablation_answer(campaign: Campaign) -> tuple[Any, list[str]]:
    """Return the ablation for programs and for people."""
    from cadge_analysis.page.parts.ablation_table import answer

    found = answer(campaign)
    lines: list[str] = []
    for one in found.tables:
        lines += [one.title, *(f"  {line}" for line in table(one.rows)), *(f"  {text}" for text in one.remarks), ""]
    return found.data, [*lines, found.note]
