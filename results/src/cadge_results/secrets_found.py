# SPDX-License-Identifier: BSD-3-Clause
"""Patterns of tokens and private keys: what must never be published, whoever put it there."""

from __future__ import annotations

import re

SECRETS = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")),
    ("an AWS key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{22,}\b")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    ("a Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("a JSON web token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.")),
    ("a bearer token", re.compile(r"(?i)\bauthorization: *bearer +[A-Za-z0-9._~+/-]{8,}")),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'<>]+:[^\s/@\"'<>]+@")),
    (
        "a password",
        re.compile(r"(?i)\b[a-z0-9_]*(?:password|passwd|secret|api_?key|token) *[=:] *[A-Za-z0-9+/_.~-]{8,}"),
    ),
)


def secret_in(text: str) -> str | None:
    """Say which kind of secret stands in a text; None where none does."""
    return next((what for what, pattern in SECRETS if pattern.search(text)), None)
