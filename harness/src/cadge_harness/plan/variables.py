# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables that a sweep sets for a layer: settings called `env.NAME`, which agents give to endpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cadge_harness.errors import UsageError
from cadge_results import LayerFile

PREFIX = "env."
_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")


def check_variables(file: LayerFile, settings: Mapping[str, str]) -> None:
    """Raise UsageError where a setting is a variable that does not steer the layer's library, or cannot be one."""
    for setting, value in settings.items():
        if not setting.startswith(PREFIX):
            continue
        name = setting.removeprefix(PREFIX)
        if not _NAME.fullmatch(name) or not value.isprintable():
            raise UsageError(f"layer {file.name}: {setting!r} = {value!r} cannot be an environment variable")
        if not file.variables:
            raise UsageError(f"layer {file.name}: no environment variable steers it, so a sweep cannot set {name}")
        if not name.startswith(file.variables):
            known = " or ".join(f"{beginning}*" for beginning in file.variables)
            raise UsageError(f"layer {file.name}: a sweep may set {known} for it, not {name}")
