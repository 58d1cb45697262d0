# SPDX-License-Identifier: BSD-3-Clause
"""What the layers of a build are linked with on this host."""

from __future__ import annotations

import contextlib
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from cadge_agent.formats import Json
from cadge_agent.host.reading import unknown
from cadge_agent.provider import AT


def build_id(path: Path) -> str | None:
    """GNU build id of a 64-bit little-endian ELF file; None where it has none."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return None
            offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(offset)
            table = file.read(size * count)
            for number in range(count):
                kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", table, number * size)
                if kind != 4:
                    continue
                file.seek(start)
                notes = file.read(length)
                while len(notes) >= 12:
                    name_bytes, data_bytes, note = struct.unpack_from("<III", notes)
                    data_at = 12 + ((name_bytes + 3) & ~3)
                    if note == 3 and notes[12 : 12 + name_bytes] == b"GNU\0":
                        return notes[data_at : data_at + data_bytes].hex()
                    notes = notes[data_at + ((data_bytes + 3) & ~3) :]
    except (OSError, struct.error):
        return None
    return None


_SYSTEM_LIBRARIES = re.compile(r"^(linux-vdso|ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libgcc_s|libstdc)")


def libraries(build: Path, environment: Mapping[str, str]) -> Json:
    """Find what the layers in a build are linked with here: {soname: {version, file, build_id}}.

    environment: that of endpoints, as far as it says where libraries are. Of a layer that has a provider, each launch
    says what it has loaded.
    """
    found: Json = {}
    for module in sorted(path for path in (build / "layers").glob("*.so") if AT not in path.name):
        try:
            done = subprocess.run(
                ["ldd", str(module)], env=environment, capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return {"unknown": unknown(error)["unknown"]}
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) < 3 or words[1] != "=>" or _SYSTEM_LIBRARIES.match(words[0]) or words[0] in found:
                continue
            if words[2] == "not":
                found[words[0]] = unknown(f"not found; {module.name} needs it")
                continue
            path = Path(words[2]).resolve()
            found[words[0]] = {"version": unknown("no package"), "file": str(path), "build_id": build_id(path)}
    package_versions(found)
    return found


_SPECIAL = re.compile(r"[]\\[*?]")


def _registered(path: str) -> list[str]:
    """Say under which names a package may have registered a file: a package may say /lib where we find /usr/lib.

    dpkg finds a whole name at once, and needs seconds for a pattern.
    """
    return [path, path.removeprefix("/usr")] if path.startswith("/usr/") else [path]


def owners(paths: Iterable[str]) -> dict[str, str]:
    """Return which Debian package owns each file, as far as one does. Raises OSError, SubprocessError."""
    names = [_SPECIAL.sub(r"\\\g<0>", name) for path in paths for name in _registered(path)]
    if not names:
        return {}
    done = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, timeout=30, check=False)
    found = {}
    for line in done.stdout.splitlines():
        package, _, path = line.partition(": ")
        with contextlib.suppress(OSError):
            found[str(Path(path).resolve())] = package.split(",")[0]
    return found


def package_versions(found: Json) -> None:
    """Fill in the Debian package and version that own each file, where there is dpkg."""
    files = {entry["file"]: entry for entry in found.values() if "file" in entry}
    if not files or shutil.which("dpkg-query") is None:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        package_of = owners(files)
        wanted = sorted(set(package_of.values()))
        if not wanted:
            return
        form = "${binary:Package} ${Package}:${Architecture} ${Version}\n"
        answer = subprocess.run(
            ["dpkg-query", "-W", "-f", form, *wanted], capture_output=True, text=True, timeout=30, check=False
        )
        versions: dict[str, str] = {}
        for line in answer.stdout.splitlines():
            short, long, version = line.split()
            versions[short] = versions[long] = version
        for path, entry in files.items():
            if path in package_of and package_of[path] in versions:
                entry["version"] = f"{package_of[path]} {versions[package_of[path]]}"
