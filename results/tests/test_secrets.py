# SPDX-License-Identifier: BSD-3-Clause
"""Which forms of secrets are found: some that once went out, and as many written down before anybody looked."""

from __future__ import annotations

import base64
import random
import string
import time

import pytest

from cadge_results.publish.secrets_found import secret_in

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
_BASE64 = base64.b64encode(_RANDOM.randbytes(32)).decode()
BY_KIND = {
    "pgpass": f"db.lab.example:5432:prod:bob:{some(12)}",
    "redis": f"redis://:{some(12)}@cache:6379/0",
    "ODBC": "Server=db;Uid=bob;Pwd=rex12;",
    "short": "DB_PASS=rex1",
    "short in YAML": "password: rex123",
    "of several words": 'password="my dog rex"',
    "account key": f"AccountName=x;AccountKey={_BASE64}",
    "Azure SAS": f"https://x.blob.example/c?sv=2020&sig={some(40)}%3D",
    "S3 presigned": f"https://s3.example/b/k?X-Amz-Credential=x&X-Amz-Signature={some(64, _HEX)}",
    "Slurm JWT": "SLURM_JWT=eyJhbGciOiJIUzI1NiJ9.e30.x",
    "JWE": f"eyJhbGciOiJSU0EtT0FFUCJ9.{some(40)}.{some(20)}.{some(20)}.{some(20)}",
    "MUNGE": f"MUNGE:{some(60)}:",
    "Kubernetes": f"kind: Secret\ndata:\n  x: {_BASE64}",
    "registry": f".dockerconfigjson: {_BASE64}",
    "registry login": f"docker login -u bob -p {some(8)} ghcr.io",
    "Discord hook": f"https://discord.example/api/webhooks/{some(18, string.digits)}/{some(60)}",
    "OpenSSH body": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
    "PKCS 8 body": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "Ansible vault": "$ANSIBLE_VAULT;1.1;AES256",
    "shadow": f"root:$6${some(8)}${some(86)}:19000:0",
    "htpasswd": f"bob:$2y$10${some(53)}",
    "Notion": "ntn_4" + some(40) + "aZ",
    "Databricks": "dapi" + some(32, _HEX),
    "W&B login": f"wandb login {some(40, _HEX)}",
    "LDAP": "ldapsearch -D cn=admin -w rexdog -b dc=x",
    "redis-cli": "redis-cli -h cache -a rexdog",
    "openssl": "openssl enc -aes-256-cbc -pass pass:rexdog -in x",
    "smbclient": "smbclient //lab/x -U bob%rexdog",
    "7z": "7z x -prexdog a.7z",
    "proxy": "curl --proxy-user bob:rexdog http://x",
    "signing key": f"SIGNING_KEY={some(20)}",
    "credentials": f"AZURE_CREDENTIALS={some(30)}",
}
"""Beside known services: by what names a secret, by which program takes it, by how it is written."""

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
    "pass: 12 of 40",
    "passes=3",
    "pass=none",
    "password: {{ vault }}",
    "unzip -P",
    "docker run -p 8080:80 nginx",
    "curl -u",
    "net use -U",
    "mysql --version",
    "h1:2222:22:ssh",
    "fe80:0000:0000:0000:0042:acff:fe11:0002",
    "02:42:ac:11:00:02",
    "ompi_mtl_ofi_component_register_and_open_of_7",
    "libmca_common_ofi.so.10.0.2",
    "build_id: 9f86d081884c7d659a2feaa0c55ad015",
    "signature of MPI_Send(3)",
    "rkey=0x12 lkey=0x34",
    "kind: layer",
    "MIIEdegrees",
    "$1 and $6 of awk",
)


@pytest.mark.parametrize("form", [*WENT_OUT, *WRITTEN_DOWN, *BY_KIND])
def test_each_form_is_found(form: str) -> None:
    text = (WENT_OUT | WRITTEN_DOWN | BY_KIND)[form]
    assert secret_in(text) is not None
    assert secret_in(f"n1: ran [{text}] and ended") is not None


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_is_let_through(text: str) -> None:
    assert secret_in(text) is None


@pytest.mark.parametrize("part", ["a.", "pass_", "mysql ", "docker login ", "h:22:", 'password= "', "ab_Aa1", "$6$"])
def test_a_hostile_text_is_searched_in_linear_time(part: str) -> None:
    """20 KB took 8 s of processor time where each place was tried with each length of a name before it."""
    text = part * (20_000 // len(part))
    began = time.process_time()
    secret_in(text)
    assert time.process_time() - began < 2
