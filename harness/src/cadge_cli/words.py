# SPDX-License-Identifier: BSD-3-Clause
"""What commands say: sentences of `messages.yml` beside this file, written as in the analysis."""

from __future__ import annotations

from pathlib import Path

MESSAGES = Path(__file__).with_name("messages.yml")


def say(key: str, /, **values: object) -> str:
    """Return a sentence. Raises KeyError for one that is not there, or a value that it lacks."""
    from cadge_analysis import messages  # takes time to import, and --help does without

    return messages.say(MESSAGES, key, **values)
