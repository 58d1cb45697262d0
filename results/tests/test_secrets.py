# SPDX-License-Identifier: BSD-3-Clause
"""Which forms of secrets are found: some that once went out, and as many written down before anybody looked."""

from __future__ import annotations

import base64
import random
import string

import pytest

from cadge_results.secrets_found import secret_in

_RANDOM = random.Random(43)
_HEX = "0123456789abcdef"


def some(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return what no dictionary has, the same in each run."""
    return "".join(_RANDOM.choice(letters) for _ in range(count))


WENT_OUT = {
    "AWS secret": f"AWS_SECRET_ACCESS_KEY={some(40)}",
    "AWS id": "AKIA" + some(16, string.ascii_uppercase + string.digits),
    "Hugging Face": f"token hf_{some(34)}",
    "OpenAI": f"sk-{some(48)}",
    "OpenAI project": f"sk-proj-{some(60)}",
    "npm": f"npm_{some(36)}",
    "Basic": "Authorization: Basic " + base64.b64encode(b"bob:" + some(12).encode()).decode(),
    "Bearer": f"Authorization: Bearer {some(40)}",
    "JSON password": '{"password": "' + some(12) + '"}',
    "option": f"--password {some(10)}",
    "option =": f"--password={some(10)}",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "OpenSSH": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "GitHub": f"ghp_{some(36)}",
    "JWT": "eyJ" + some(20) + ".eyJ" + some(30) + "." + some(40),
    "URL": f"postgres://bob:{some(10)}@db/x",
}
WRITTEN_DOWN = {
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + some(80),
    "Stripe": f"sk_live_{some(24)}",
    "SendGrid": f"SG.{some(22)}.{some(43)}",
    "Azure storage": f"AccountKey={base64.b64encode(_RANDOM.randbytes(64)).decode()}",
    "Docker Hub": f"dckr_pat_{some(27)}",
    "Vault": f"hvs.{some(95)}",
    "Slack hook": f"https://hooks.slack.com/services/T{some(8).upper()}/B{some(8).upper()}/{some(24)}",
    "Telegram": f"{some(9, string.digits)}:AA{some(33)}",
    "mysql -p": f"mysql -u root -p{some(10)} db",
    "curl -u": f"curl -u bob:{some(10)} https://lab.example/x",
    "sshpass": f"sshpass -p {some(10)} ssh n1",
    "age": f"AGE-SECRET-KEY-1{some(58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}",
    "netrc": f"machine lab.example login bob password {some(10)}",
    "Ansible": f"ansible_become_pass: '{some(10)}'",
    "W&B": f"WANDB_API_KEY={some(40, _HEX)}",
    "X-Api-Key": f"X-Api-Key: {some(32)}",
}

HARMLESS = (
    "the token of the out-of-band channel",
    "a secret: none",
    "token: out of order, 12 of 40000 requests",
    "password prompts are refused; see --ask-become-pass",
    "key: 9f86d081884c7d659a2feaa0c55ad015",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "point_id 3f2a9c0d11e45b67, launch b1-0001-0123abcd",
    "cadge run --pattern rpc --passes 3 --sizes 8B,64B",
    "mkdir -p /tmp/cadge-12 && ssh -p 2222 n1",
    "https://lab.example.org:8443/a?b=c",
    "auth: HMAC-SHA-256 over fresh numbers",
    "UCX_TLS=rc_x,self UCX_IB_GID_INDEX=3",
    "0x0000000000400000",
    "token bucket of 1000000000 bits",
)


@pytest.mark.parametrize("form", [*WENT_OUT, *WRITTEN_DOWN])
def test_each_form_is_found(form: str) -> None:
    text = (WENT_OUT | WRITTEN_DOWN)[form]
    assert secret_in(text) is not None
    assert secret_in(f"n1: ran [{text}] and ended") is not None


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_is_let_through(text: str) -> None:
    assert secret_in(text) is None
