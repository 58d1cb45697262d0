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

_KEYS = r"api|access|account|private|secret|sign(?:ing)?|encryption|master|shared|pre[_-]?shared|deploy|session|munge"
_NAME = (
    r"[\w.-]{0,80}(?:passw(?:or)?d|passphrase|_pass|pwd|secret|credentials?|token|signature|cookie|_jwt|[_-]auth|oauth"
    rf"|(?:{_KEYS})[_-]?key)"
)
_CHOSEN = r"(?:[\w.-]{0,80}(?:passw(?:or)?d|passphrase|passcode|pwd)|(?:[\w.-]{0,80}[_.-])?(?:pass|pw))(?![A-Za-z0-9])"
"""What names a password and nothing else: people choose short ones."""
_VALUE = r"[^\s\"'<>]{8,}"
_MIXED = r"(?=[^\s\"'<>]*\d)(?=[^\s\"'<>]*[A-Za-z])"
"""Of a word that stands after a colon, prose has no digit in it."""
_SHORT = r"(?!\$|%|\{|\*|(?:none|null|true|false)\b)[^\s\"'<>$]{4,}"
_TOKENS = r"hf|npm|sk|rk|gh[opusr]|github_pat|gl[a-z]{2,4}|dckr_[op]at|hv[bsr]|xox[abeprs]|nvapi|dop_v1|ya29|tskey|pypi"
_ANY_CASE = r"(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{24,}"
"""As a service makes it up: digits, capital and small letters in one word."""
_OPTIONS = (
    (r"(?:mysql|mariadb)[a-z]*", "-p"),
    ("7z[a-z]*", "-p"),
    ("redis-cli", r"-a\s+"),
    ("ldap[a-z]+", r"-w\s+"),
    ("(?:un)?zip", r"-P\s*"),
    ("openssl", r"(?:-k\s+|-pass(?:in|out)?\s+pass:)"),
    (r"(?:docker|podman|buildah|skopeo|helm|nerdctl|apptainer|singularity)\s(?:[^|;]{0,80}\s)?login", r"-p[\s=]*"),
    ("(?:curl|wget|http)", r"(?:-[uU]|--(?:proxy-)?user)[\s=]+[^\s:]+:"),
    ("(?:smbclient|rpcclient|net)", r"-U\s*[^\s%]+%"),
    ("wandb", r"login\s+"),
)
"""Programs, and what a password follows on their command lines."""

SECRETS = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-|AGE-SECRET-KEY-1"),
        ("a private key", r"\bb3BlbnNzaC1rZXktdjE|\bMII[A-Za-z0-9+/]{3,5}IBA(?:AK|DAN)"),
        ("an AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a token", rf"(?<![\w.-])(?:{_TOKENS})[-_.](?=[\w-]*\d)[\w-]{{16,}}"),
        ("a token", rf"(?<![\w./-])[a-z]{{2,8}}_(?:[a-z]+_)?{_ANY_CASE}(?![\w-])"),
        (
            "a token",
            r"(?<![\w.-])(?:shp[a-z]{2}_|dapi|key-|PMAK-|NRAK-)[0-9A-Za-z-]{24,}(?!\w)|\bsha256~[\w-]{30,}|\.atlasv1\.",
        ),
        ("a Google key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
        ("a JSON web token", r"\beyJ(?:[\w-]{10,}\.eyJ[\w-]{10,}|(?:hbGciOi|0eXAiOi|raWQiOi)[\w-]*)\."),
        ("a hash of a password", r"\$(?:[156y]|2[abxy]|apr1|argon2\w+|scrypt)\$[\w./$,=+-]{16,}"),
        ("a credential", r"\$ANSIBLE_VAULT;|\bMUNGE:[\w+/=]{8,}:"),
        ("a secret of Kubernetes", r"\bkind[\"']?\s*:\s*[\"']?Secret\b|\bdockerconfigjson[\"']?\s*:\s*\S{8,}"),
        (
            "an address that lets in",
            r"/webhooks/\d+/[\w-]{20,}|(?i:[?&](?:sig|signature|x-(?:amz|goog)-signature)=)\S{16,}",
        ),
        ("a password", r"(?<![\w.:@/*-])[\w.*-]+:(?:\d{2,5}|\*):[^\s:/]+:[^\s:/]+:[^\s:/\]]{6,}(?![\w:/])"),
        (
            "a proof of who somebody is",
            r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)\s+\S{8,}",
        ),
        ("a proof of who somebody is", r"\b[Bb]earer\s+[\w.~+/-]{20,}|\"auth\"\s*:\s*\"[\w+/=]{8,}\""),
        ("a private key", r"\bclient-key-data\s*:\s*\S{8,}"),
        ("a token", rf"(?i)(?<!\w)(?:x-[\w-]*(?:key|token)|(?:set-)?cookie)\s*:\s*{_VALUE}"),
        ("a password in an address", r"\b[a-z][a-z0-9+.-]*://(?:[^\s/:@\"'<>]*:[^\s/@\"'<>]+|\w{20,})@"),
        (
            "a password",
            rf"(?i)(?<![\w.-]){_NAME}\w{{0,40}}[\"']?\s*(?:=\s*[\"']?{_VALUE}|:\s*(?:[\"']{_VALUE}|{_MIXED}{_VALUE}))",
        ),
        (
            "a password",
            rf"(?i)(?<![\w.-]){_CHOSEN}[\"']?(?:=[\"']?{_SHORT}|\s*[=:]\s*(?:[\"']{_SHORT}|{_MIXED}{_SHORT}))"
            rf"|(?<![\w.-]){_CHOSEN}\s*[=:]\s*([\"'])(?=[^\"']*\s)[^\"']{{8,}}\1",
        ),
        (
            "a password",
            rf"(?i)(?<!\S)[\[(\"']?--?{_NAME}(?![\w-]*(?:file|path|env|stdin))[\w-]*(?:\s+|=)[\"']?(?-i:(?![A-Z]+\b))"
            r"[^\s\"'<>/~.-][^\s\"'<>]{3,}",
        ),
        ("a password", r"\bsshpass\s+-p\s*[^\s\"'<>]{4,}|\blogin\s+\S+\s+password\s+\S{4,}"),
        *(
            ("a password", rf"\b{program}\s(?:[^|;]{{0,200}}\s)?{before}[^\s\"'<>]{{4,}}")
            for program, before in _OPTIONS
        ),
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
