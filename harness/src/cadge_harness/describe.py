# SPDX-License-Identifier: BSD-3-Clause
"""Asking the driver what each built layer is: its library, and what opens where on this machine.

Answers are facts of this machine alone; planning uses them to refuse without trying. A driver that cannot answer
leaves the layer undescribed, and the launch then says what is wrong.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from cadge_harness.catalogue import Catalogue, Context, Description, LayerInfo, Refusal
from cadge_harness.paths import Checkout
from cadge_results.base import Place, Wait

_TIMEOUT_S = 20
_PLACES: tuple[Place, ...] = ("self", "within", "between")
_WAITS: tuple[Wait, ...] = ("poll", "block")


def describe_layers(catalogue: Catalogue, checkout: Checkout) -> Catalogue:
    """Return the catalogue with a description of every built layer that the driver can describe."""
    if not checkout.driver.is_file():
        return catalogue
    with ThreadPoolExecutor(max_workers=2) as pool:
        layers = pool.map(lambda info: _describe(info, checkout), catalogue.layers)
        return replace(catalogue, layers=tuple(layers))


def _describe(info: LayerInfo, checkout: Checkout) -> LayerInfo:
    if info.absent is not None:
        return info
    argv = [str(checkout.driver), "describe", "--modules", str(checkout.modules), "--layer", info.name]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
        raw = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return info
    if not isinstance(raw, dict):
        return info
    return replace(info, description=read_description(raw))


def read_description(raw: Mapping[str, object]) -> Description:
    """Read the driver's answer; what it does not say stays unknown."""
    library = raw.get("library")
    library = library if isinstance(library, Mapping) else {}
    contexts: dict[tuple[Place, Wait], Context | Refusal] = {}
    for entry in _list(raw.get("contexts")):
        place = next((item for item in _PLACES if item == entry.get("place")), None)
        wait = next((item for item in _WAITS if item == entry.get("wait")), None)
        if place is not None and wait is not None:
            contexts[place, wait] = _context(entry)
    return Description(
        library=_text(library.get("name")),
        version=_text(library.get("stated_version")),
        options=tuple(str(item.get("name")) for item in _list(raw.get("options"))),
        contexts=contexts,
    )


def _context(entry: Mapping[str, object]) -> Context | Refusal:
    if entry.get("opens") is False:
        code = _text(entry.get("reason_code")) or "LIBRARY"
        return Refusal(code=code, reason=_text(entry.get("reason")) or "it cannot be opened here")
    limits = entry.get("limits")
    limits = limits if isinstance(limits, Mapping) else {}
    caps = entry.get("caps")
    return Context(
        caps=frozenset(str(item) for item in caps) if isinstance(caps, list) else frozenset(),
        message_bytes_max=_number(limits.get("message_bytes_max")),
        rma_bytes_max=_number(limits.get("rma_bytes_max")),
        depth_max=_number(limits.get("depth_max")),
    )


def _list(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
