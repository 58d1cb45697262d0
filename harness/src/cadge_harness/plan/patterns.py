# SPDX-License-Identifier: BSD-3-Clause
"""Patterns, forms and floors of a checkout, and whether the built driver has the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import Checkout
from cadge_harness.surroundings import ask, why_it_fails
from cadge_harness.yamlfile import load_document
from cadge_results import FormatError, PatternFile, Plan, Workloads, read_workloads
from cadge_results.formats.base import Document
from cadge_results.formats.reason import OF_THE_DRIVER
from cadge_results.parameter_tables import digest_of


def read_patterns(checkout: Checkout) -> Workloads:
    """Read every pattern and floor file. Raises UsageError with line and column."""
    try:
        return read_workloads(checkout.harness, _load)
    except FormatError as error:
        raise UsageError(str(error)) from error


_KNOWN: dict[tuple[type[Document], str], Document] = {}
"""Files of this process by what they say: one command reads them several times."""


def _load(path: Path, kind: type[Document]) -> Document:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if (kind, text) not in _KNOWN:
        _KNOWN[kind, text] = load_document(text, kind, source=str(path))
    return _KNOWN[kind, text]


def ask_driver(driver: Path) -> Mapping[str, object] | str:
    """Return what the driver says of its patterns (cadge.driver-patterns/2), or why it does not say it."""
    raw = ask(driver, "patterns", "--json")
    if raw is None and (why := why_it_fails(driver)):
        return f"{driver.name} does not run here: {why}. Build Cadge on the machine with the oldest libc"
    if raw is None or raw.get("schema") != "cadge.driver-patterns/2":
        return f"{driver.name} does not list its patterns"
    return raw


def ask_version(driver: Path) -> Mapping[str, object] | None:
    """Return what the driver says of itself, its version and formats; None where it does not."""
    return ask(driver, "version")


def differences(raw: Mapping[str, object], workloads: Workloads) -> Iterator[str]:
    """Yield how a driver differs from the files: a sentence each."""
    for what, files in (("pattern", workloads.patterns), ("form", workloads.forms)):
        has = _names(raw.get(f"{what}s"))
        yield from _sets(what, set(has), set(files))
        for name in sorted(set(has) & set(files)):
            yield from _pattern(name, has[name], files[name])
    floors = _names(raw.get("floors"))
    yield from _sets("floor", set(floors), set(workloads.floors))
    for name in sorted(set(floors) & set(workloads.floors)):
        forms = _list(floors[name].get("forms"))
        yield from _sets(f"form of {name}", set(forms), set(workloads.floors[name].forms))
    reasons = _list(raw.get("reasons"))
    yield from _sets("reason", set(reasons), {str(reason) for reason in OF_THE_DRIVER})


def pattern_differences(raw: Mapping[str, object], workloads: Workloads, names: Iterable[str]) -> Iterator[str]:
    """Yield how a driver differs from the files of some patterns: a sentence each."""
    has = _names(raw.get("patterns"))
    for name in dict.fromkeys(names):
        if name not in has:
            yield f"its driver has no pattern {name}"
        else:
            yield from _pattern(name, has[name], workloads.patterns[name])


def check_driver(checkout: Checkout) -> None:
    """Raise UnfitError where the built driver has other patterns, forms, floors or reasons than the files."""
    workloads = read_patterns(checkout)
    said = _said(checkout)
    if wrong := list(differences(said, workloads)):
        more = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise UnfitError(f"the build is stale: {wrong[0]}{more}", commands=(checkout.to_build,))


def check_plan(checkout: Checkout, plan: Plan) -> None:
    """Raise UnfitError where a campaign was planned with other parameters or quantities than the built driver has."""
    said = _said(checkout)
    has = {**_names(said.get("patterns")), **_names(said.get("forms"))}
    wrong = [text for name, file in plan.patterns.items() for text in _pattern(name, has.get(name, {}), file)]
    if wrong:
        raise UnfitError(
            f"this campaign was planned by another version of Cadge, and this one cannot complete it: {wrong[0]}. "
            "`cadge report` shows its results; to measure the rest, start a new campaign"
        )


def _said(checkout: Checkout) -> Mapping[str, object]:
    said = ask_driver(checkout.driver)
    if isinstance(said, str):
        raise UnfitError(f"the build cannot be used: {said}", commands=(checkout.to_build,))
    return said


def _pattern(name: str, has: Mapping[str, object], file: PatternFile) -> Iterator[str]:
    if (roles := _list(has.get("roles"))) != list(file.roles):
        yield f"{name} has roles {', '.join(roles)} in the driver and {', '.join(file.roles)} in its file"
    if has.get("digest") != digest_of(file):
        yield f"{name} has other parameters, quantities or needs in the driver than in its file"


def _sets(what: str, driver: set[str], files: set[str]) -> Iterator[str]:
    yield from (f"the driver has no {what} {name}" for name in sorted(files - driver))
    yield from (f"the driver has a {what} {name} that has no file" for name in sorted(driver - files))


def _names(value: object) -> dict[str, Mapping[str, object]]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): one if isinstance(one, Mapping) else {} for name, one in value.items()}


def _list(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
