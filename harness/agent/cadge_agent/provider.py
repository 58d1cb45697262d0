# SPDX-License-Identifier: BSD-3-Clause
"""Which build of its library, or of Cadge, serves a layer here, where one was chosen."""

from __future__ import annotations

import json
from pathlib import Path

from cadge_agent.errors import LaunchFailedError
from cadge_agent.orders import OfProvider

AT = "@"
OF_CADGE = "cadge"
"""What a build is of that has a driver of its own, in the place of a library."""
UNSTATED = ("LD_LIBRARY_PATH", "OPAL_PREFIX")
"""What an inventory states of the system's libraries: it would lead a provider's to them."""


def provider_of(build: Path, layer: str) -> OfProvider | None:
    """Return a layer's provider, paths as they are here; None where its library is the one the build found by itself.

    Raises LaunchFailedError where the build does not say which it is.
    """
    if AT not in layer:
        return None
    beside = build / "layers" / f"{layer}.provider"
    try:
        folder = build / "providers" / beside.read_text(encoding="utf-8").strip()
        said = json.loads((folder / "provider.json").read_text(encoding="utf-8"))
        launcher, environment = said.get("launcher"), said.get("environment", {})
        driver = said["file"] if said.get("library") == OF_CADGE else None
        if not _are_texts([launcher or "", driver or "", *environment, *environment.values()]):
            raise ValueError("launcher, file and environment of provider.json hold something that is no text")
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise LaunchFailedError("BUILD_ABSENT", f"layer {layer}: its provider cannot be read: {error}") from error
    return {
        "launcher": str(folder / launcher) if launcher else None,
        "driver": str(folder / driver) if driver else None,
        "environment": dict(environment),
    }


def _are_texts(values: list[object]) -> bool:
    """Say whether a process can be given all of them: text of printable characters."""
    return all(isinstance(one, str) and one.isprintable() for one in values)


def with_provider(environment: dict[str, str], provider: OfProvider | None) -> dict[str, str]:
    """Return an environment as a layer's own library needs it. A build of Cadge uses the host's libraries."""
    if provider is None or provider["driver"]:
        return environment
    kept = {name: value for name, value in environment.items() if name not in UNSTATED}
    return {**kept, **provider["environment"]}
