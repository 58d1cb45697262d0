# SPDX-License-Identifier: BSD-3-Clause
"""Finding tokens, passwords and private keys: what must never be published, whoever put it there.

The forms of known services are those of detect-secrets, of which nothing is used that reads files, guesses by entropy
or asks a service whether a key is valid. Beside them stand forms that it does not know, most of them of command lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

_NAME = r"[\w.-]*(?:passw(?:or)?d|passphrase|_pass|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token)"
_VALUE = r"[^\s\"'<>]{8,}"
_MIXED = r"(?=[^\s\"'<>]*\d)(?=[^\s\"'<>]*[A-Za-z])" + _VALUE
"""Of a word that stands after a colon, prose has no digit in it."""
_TOKENS = r"hf|npm|sk|rk|gh[opusr]|github_pat|gl[a-z]{2,4}|dckr_[op]at|hv[bsr]|xox[abeprs]|nvapi|dop_v1|ya29|tskey|pypi"

SECRETS = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-|AGE-SECRET-KEY-1"),
        ("an AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a token", rf"(?<![\w.-])(?:{_TOKENS})[-_.](?=[\w-]*\d)[\w-]{{16,}}"),
        ("a Google key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
        ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."),
        (
            "a proof of who somebody is",
            r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)\s+\S{8,}",
        ),
        ("a proof of who somebody is", r"\b[Bb]earer\s+[\w.~+/-]{20,}|\"auth\"\s*:\s*\"[\w+/=]{8,}\""),
        ("a private key", r"\bclient-key-data\s*:\s*\S{8,}"),
        ("a token", rf"(?i)(?<!\w)(?:x-[\w-]*(?:key|token)|(?:set-)?cookie)\s*:\s*{_VALUE}"),
        ("a password in an address", r"\b[a-z][a-z0-9+.-]*://(?:[^\s/:@\"'<>]+:[^\s/@\"'<>]+|\w{20,})@"),
        ("a password", rf"(?i)(?<![\w-]){_NAME}\w*[\"']?\s*(?:=\s*[\"']?{_VALUE}|:\s*(?:[\"']{_VALUE}|{_MIXED}))"),
        (
            "a password",
            rf"(?i)(?<!\S)[\[(\"']?--?{_NAME}(?![\w-]*(?:file|path|env|stdin))[\w-]*(?:\s+|=)[\"']?(?-i:(?![A-Z]+\b))"
            r"[^\s\"'<>/~.-][^\s\"'<>]{3,}",
        ),
        ("a password", r"\b(?:sshpass\s+-p\s*|(?:mysql|mariadb)[a-z]*\s(?:[^|;]*\s)?-p)[^\s\"'<>]{4,}"),
        ("a password", r"\b(?:curl|wget|http)\s(?:[^|;]*\s)?(?:-u|--user)[\s=]+[^\s:]+:[^\s\"'<>]{4,}"),
        ("a password", r"\blogin\s+\S+\s+password\s+\S{4,}"),
    )
)


@cache
def _known() -> Mapping[str, BasePlugin]:
    """Return the forms of known services that detect-secrets has, by their names."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    every: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return {
        name: kind()
        for name, kind in every.items()
        if issubclass(kind, RegexBasedDetector) and name != "Public IP (ipv4)"  # addresses: see redact
    }


@lru_cache(maxsize=1 << 16)
def secret_in(text: str) -> str | None:
    """Say which kind of secret stands in a text; None where none does."""
    if len(text) < 8:
        return None
    own = next((what for what, pattern in SECRETS if pattern.search(text)), None)
    known = (f"a secret ({name})" for name, form in _known().items() if any(form.analyze_string(text)))
    return own or next(known, None)
