# SPDX-License-Identifier: BSD-3-Clause
"""What became of a launch, in a status, a sentence and a code."""

from __future__ import annotations

from cadge_agent.child import say_code
from cadge_agent.errors import LaunchFailedError
from cadge_agent.formats import Json


def outcome(
    result: Json | None, failure: LaunchFailedError | None, code: int | None
) -> tuple[str, str | None, str | None]:
    """(status, reason, reason code) of a launch. What the driver says goes before what was seen from outside."""
    if isinstance(result, dict) and result.get("status") in ("done", "refused", "failed"):
        return result["status"], result.get("reason"), result.get("reason_code")
    if failure is not None:
        refused = failure.code in ("NODE_LACKS", "BUILD_ABSENT")
        return ("refused" if refused else "failed"), str(failure), failure.code
    known = {2: "LIBRARY", 3: "LIBRARY", 4: "PEER_LOST"}
    return "failed", f"endpoint 0 ended {say_code(code)} and left no result", known.get(code or 0, "LIBRARY")


def port_taken(record: Json) -> bool:
    """Whether a launch failed because somebody else has a port it wanted."""
    if record["status"] == "done":
        return False
    if record["reason_code"] == "PORT_TAKEN":
        return True
    words = [record["reason"] or "", *(text[-500:] for text in record["log_tail"])]
    return any("address already in use" in text.lower() or "are all taken" in text for text in words)
