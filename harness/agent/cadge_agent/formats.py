# SPDX-License-Identifier: BSD-3-Clause
"""Names of the documents that the agent reads and writes."""

from __future__ import annotations

from typing import Any

BLOCK_SCHEMA = "cadge.block/1"
RECORD_SCHEMA = "cadge.launch-record/1"
NODE_SCHEMA = "cadge.node/1"

Json = dict[str, Any]
