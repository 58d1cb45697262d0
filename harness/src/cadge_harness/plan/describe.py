# SPDX-License-Identifier: BSD-3-Clause
"""Asking the driver what each built layer is: its library, and what it grants where.

Only what a layer says of itself leads to refusals when planning: which places, wait modes and operations it has, and
what this user may not do on this machine, where the hosts are this machine. Whether a transport or a device is there is
a fact of the nodes, and found by launches. A driver that cannot answer
leaves the layer undescribed, and the launch then says what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue, Context, Description, Refusal
from cadge_harness.providers.folder import driver_of
from cadge_harness.surroundings import NOTHING_STATED, ask, variables
from cadge_results import Reason
from cadge_results.formats.base import Place, Wait
from cadge_results.store.usercache import cache_folder, cached, keep

_PLACES: tuple[Place, ...] = ("self", "within", "between")
_WAITS: tuple[Wait, ...] = ("poll", "block")
_KNOWN = frozenset({Reason.NO_CAP, Reason.NO_WAIT, Reason.PERMISSION})
"""Codes that lead to a refusal; the last one holds on this machine, for this user."""


def describe_layers(
    catalogue: Catalogue,
    checkout: Checkout,
    names: Collection[str] | None = None,
    stated: Mapping[str, str] = NOTHING_STATED,
) -> Catalogue:
    """Return the catalogue with a description of every built layer, or of those named, that the driver can describe.

    A module that is as it was when it was last asked is not asked again. `stated` are the variables that the inventory
    states for endpoints: where their libraries are.
    """
    if not checkout.driver.is_file():
        return catalogue
    asked = [info for info in catalogue.layers if info.absent is None and (names is None or info.name in names)]
    # what an inventory states of the system's libraries would lead another build of them there
    around = {
        info.name: stated if info.build is None or info.build.of_cadge else info.build.environment for info in asked
    }
    drivers = {info.name: driver_of(checkout, info.build) for info in asked}
    answers = _recall(checkout, around, drivers)
    if unknown := [name for name in around if name not in answers]:
        from concurrent.futures import ThreadPoolExecutor  # takes longer to import than most answers to read

        # before asking: it may be built meanwhile
        keys = {name: _key_of(checkout, name, drivers[name], around[name]) for name in unknown}
        with ThreadPoolExecutor(max_workers=2) as pool:
            said = pool.map(lambda name: _ask(name, checkout, drivers[name], around[name]), unknown)
            new = dict(zip(unknown, said, strict=True))
        found = {name: answer for name, answer in new.items() if answer is not None}
        # What cannot be loaded, or is forbidden, may be mended without a change of its module: it is asked each time.
        lasting = {
            name: answer for name, answer in found.items() if not answer.get("reason") and not _forbidden(answer)
        }
        _remember(checkout, {keys[name]: answer for name, answer in lasting.items()})
        answers |= found
    layers = tuple(
        replace(info, description=read_description(answers[info.name])) if info.name in answers else info
        for info in catalogue.layers
    )
    return replace(catalogue, layers=layers)


def _ask(name: str, checkout: Checkout, driver: Path, stated: Mapping[str, str]) -> Mapping[str, object] | None:
    modules = str(checkout.modules.absolute())
    return ask(driver, "describe", "--modules", modules, "--layer", name, stated=stated)


def read_description(raw: Mapping[str, object]) -> Description:
    """Read the driver's answer (cadge.describe/1); what it does not say stays unknown."""
    table = _mapping(raw.get("table"))
    contexts: dict[tuple[Place, Wait], Context | Refusal] = {}
    versions = [_text(_mapping(table.get("library")).get("stated_version"))]
    for entry in _list(raw.get("opens")):
        versions.insert(0, _text(_mapping(entry.get("library")).get("stated_version")))
        place = next((item for item in _PLACES if item == entry.get("place")), None)
        wait = next((item for item in _WAITS if item == entry.get("wait")), None)
        context = _context(entry)
        if place is not None and wait is not None and context is not None:
            contexts[place, wait] = context
    return Description(
        library=_text(_mapping(table.get("library")).get("name")),
        version=next((version for version in versions if version), None),
        options=tuple(str(item.get("name")) for item in _list(table.get("options"))),
        contexts=contexts,
        claims=_caps(table),
        trouble=_text(raw.get("reason")),
    )


def _forbidden(answer: Mapping[str, object]) -> bool:
    return any(entry.get("reason_code") == Reason.PERMISSION for entry in _list(answer.get("opens")))


def _context(entry: Mapping[str, object]) -> Context | Refusal | None:
    if entry.get("opens") is True:
        caps = _caps(entry)
        return None if caps is None else Context(caps=caps)
    code = _text(entry.get("reason_code"))
    if code not in _KNOWN or code is None:
        return None
    reason = _text(entry.get("reason")) or "the layer does not have it"
    if code == Reason.PERMISSION and os.geteuid() != 0:
        reason += "; root may: run cadge with sudo"
    return Refusal(code=Reason(code), reason=reason)


def _caps(entry: Mapping[str, object]) -> frozenset[str] | None:
    caps = entry.get("caps")
    return frozenset(str(item) for item in caps) if isinstance(caps, list) else None


def _list(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


_SCHEMA = "cadge.said/1"
_BYTES_MAX = 4 * 2**20
_LINKER = Path("/etc/ld.so.cache")


def _key_of(checkout: Checkout, name: str, driver: Path, stated: Mapping[str, str] = NOTHING_STATED) -> str:
    """Return what an answer of a module depends on, as one word; the answer holds for this key alone.

    `stated` are the variables that an inventory states for endpoints.
    """
    files = [_state(path) for path in (checkout.modules / f"{name}.so", driver, _LINKER)]
    text = json.dumps([name, files, sorted(variables(stated).items()), os.uname().release, os.geteuid()])
    return f"{name} {hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}"


def _recall(
    checkout: Checkout, around: Mapping[str, Mapping[str, str]], drivers: Mapping[str, Path]
) -> dict[str, Mapping[str, object]]:
    """Return the answers of those modules that are as they were when they gave them; `around`: their variables."""
    kept = _read(checkout)
    keys = {name: _key_of(checkout, name, drivers[name], stated) for name, stated in around.items()} if kept else {}
    return {name: kept[key] for name, key in keys.items() if key in kept}


def _remember(checkout: Checkout, answers: Mapping[str, Mapping[str, object]]) -> None:
    """Keep answers by their keys, in the place of earlier ones of the same modules."""
    path = _path(checkout)
    if path is None or not answers:
        return
    new = {key.split()[0] for key in answers}
    kept = {key: answer for key, answer in _read(checkout).items() if key.split()[0] not in new}
    document = {"schema": _SCHEMA, "modules": str(checkout.modules), "said": kept | dict(answers)}
    keep(path, (json.dumps(document) + "\n").encode())


def _path(checkout: Checkout) -> Path | None:
    """Return the file of a build tree in the user's cache; None where there is no such folder to have."""
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(checkout.modules)).hexdigest()[:16]
    return folder and folder / f"layers-{name}.json"


def _read(checkout: Checkout) -> dict[str, Mapping[str, object]]:
    path = _path(checkout)
    if path is None:
        return {}
    try:
        raw = json.loads(cached(path, _BYTES_MAX) or b"")
    except (ValueError, RecursionError):
        return {}
    said = raw.get("said") if isinstance(raw, dict) and raw.get("schema") == _SCHEMA else None
    if not isinstance(said, dict):
        return {}
    return {key: answer for key, answer in said.items() if isinstance(answer, dict) and key.strip()}


def _state(path: Path) -> list[object]:
    """Return what changes when a file is written or replaced."""
    try:
        found = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), found.st_ino, found.st_size, found.st_mtime_ns]
