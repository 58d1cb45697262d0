# SPDX-License-Identifier: BSD-3-Clause
"""What a build is on this host: whether its driver starts, and which of its layers can be loaded."""

from __future__ import annotations

import errno
import json
import platform
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cadge_agent import AGENT_VERSION
from cadge_agent.environment import base_environment, endpoint_environment
from cadge_agent.errors import LaunchFailedError
from cadge_agent.faults import FaultError, fault
from cadge_agent.formats import BlockHost, Fault, Json, LayerReport
from cadge_agent.provider import provider_of, with_provider

SAME = ("version", "abi", "schema", "revision")
"""What a driver says of itself that must be the same on all hosts."""
ANSWER_S = 20
AT_ONCE = 2
INSTALL = "install it there, or set cadge_ld_library_path in the inventory to where it is"
OLDEST = (
    "The build is for a newer libc than this host's. Build Cadge on the host with the oldest one, and set "
    "cadge_build_path in the inventory to that build"
)
_NEWER_LIBC = re.compile(r"\bGLIBC_[0-9.]+")
_NOT_LOADED = "cannot be loaded: "


def ask_driver(host: str, build: Path, ld_library_path: str) -> Json:
    """Return what the driver is, and the machine and the agent. Raises FaultError where it does not say."""
    driver = build / "bin" / "cadge-driver"
    if not driver.exists():
        raise _unfit(f"{host} has no build: there is no {driver}")
    try:
        done = subprocess.run(
            [str(driver), "version"],
            env=base_environment(ld_library_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _unfit(f"{driver} cannot be run on {host}: {error.strerror}") from error
        kind = platform.machine()
        text = f"the build is for another kind of machine than {host}, which is {kind}"
        raise _unfit(
            text, f"Build Cadge on a {kind} and set cadge_build_path in the inventory to that build"
        ) from error
    except subprocess.SubprocessError as error:
        raise _unfit(f"{driver} does not answer on {host} within {ANSWER_S} s") from error
    if done.returncode != 0:
        why = " ".join((done.stderr or done.stdout).split())
        why = _of_libc(why) or why[-300:] or f"exit status {done.returncode}"
        raise _unfit(f"{driver} does not run on {host}: {why}", _fix_of(why))
    try:
        version = json.loads(done.stdout)
        said = {key: version.get(key) for key in SAME}
    except (ValueError, AttributeError) as error:
        text = f"{driver} on {host} is not a driver of this tool: it answered {done.stdout[:80]!r}"
        raise _unfit(text) from error
    return {**said, "agent": AGENT_VERSION, "machine": platform.machine()}


def _of_libc(why: str) -> str:
    """Say which version of the libc a loader misses, the newest of all that it names; "" where it misses none."""
    missing = sorted(set(_NEWER_LIBC.findall(why)), key=lambda name: [int(part) for part in re.findall("[0-9]+", name)])
    return f"it needs {missing[-1]}, and the libc there is {' '.join(platform.libc_ver())}" if missing else ""


def _fix_of(why: str) -> str:
    """Say what to do where something cannot be loaded. No search path brings a libc: the loader has to fit it."""
    return OLDEST if _NEWER_LIBC.search(why) else f"Where a library is missing, {INSTALL}"


def _unfit(text: str, fix: str = "") -> FaultError:
    again = (
        "Put Cadge there (make build, or an unpacked release), or leave cadge_build_path out of the inventory: then "
        "our build is copied"
    )
    return FaultError(fault("build", text, fix or again))


def layers_of(build: Path, host: BlockHost) -> dict[str, LayerReport]:
    """Ask every layer of a build what it is, by its name."""
    names = sorted(path.stem for path in (build / "layers").glob("*.so") if not path.name.startswith("shim-"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: _ask_layer(build, name, host), names)))


def _ask_layer(build: Path, name: str, host: BlockHost) -> LayerReport:
    argv = ["describe", "--modules", str(build / "layers"), "--layer", name]
    with tempfile.TemporaryDirectory(prefix="cadge-") as scratch:
        home = Path(scratch, "home")
        home.mkdir(mode=0o700)
        try:
            provider = provider_of(build, name)
            driver = (provider and provider["driver"]) or str(build / "bin" / "cadge-driver")
            done = subprocess.run(
                [driver, *argv],
                env=with_provider(endpoint_environment(host, home, Path(scratch)), provider),
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ANSWER_S,
                check=False,
            )
            answer = json.loads(done.stdout)
            library = (answer.get("table") or {}).get("library") or {}
            found = {key: library.get(key) for key in ("name", "stated_version")}
            return {"trouble": answer.get("reason"), "library": found["name"], "version": found["stated_version"]}
        except LaunchFailedError as error:
            why = str(error)
        except subprocess.TimeoutExpired:
            why = f"it did not answer within {ANSWER_S} s"
        except (OSError, ValueError, AttributeError) as error:
            why = f"the driver does not describe it: {error}"
    return {"trouble": why, "library": None, "version": None}


def layer_faults(host: str, layers: Mapping[str, LayerReport]) -> Iterator[Fault]:
    """Say which layers cannot be loaded, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, layer in layers.items():
        if layer["trouble"]:
            reason = layer["trouble"].partition(_NOT_LOADED)[2] or layer["trouble"]
            by_reason.setdefault(reason, []).append(name)
    none = bool(layers) and all(layer["trouble"] for layer in layers.values())
    for reason, names in by_reason.items():
        yield fault(
            "layers",
            f"{host} cannot use {', '.join(names)}: {reason}",
            f"{_fix_of(reason)}; or measure other layers (--layers)",
            only_warn=not none,
        )
