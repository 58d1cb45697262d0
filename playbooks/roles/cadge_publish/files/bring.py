#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packs a published site for a web host, or places it into a folder.

    bring.py pack SITE ARCHIVE              writes a tar file; equal sites give the same release
    bring.py place SITE FOLDER [--dry-run]  writes what is new or differs, and removes of each run, and beside
                                            the runs, what an earlier `place` wrote and SITE has no more

Both hold each run against its checksums first, and print a line of JSON:
{"release": DIGEST, "index_sha256": DIGEST, "files": NUMBER, "bytes": NUMBER, "changed": NUMBER}.
Exit 1 with a sentence where SITE is no site, was damaged or holds links, or FOLDER has files of others of these names.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

MARKER = "cadge-site.json"
SUMS = "SHA256SUMS"


def files_of(site: Path) -> dict[str, bytes]:
    """Return the digest of every file that is to be read, by its name; Git's own are left out."""
    if not (site / MARKER).is_file():
        sys.exit(f"{site} is no site of cadge: it has no {MARKER}; make one with: cadge publish --to {site}")
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(site):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in (*folders, *names):
            if Path(folder, name).is_symlink():
                sys.exit(f"{Path(folder, name)} is a link; a web host is brought files alone")
        for name in sorted(names):
            if not name.startswith(".git"):
                path = Path(folder, name)
                found[str(path.relative_to(site))] = digest(path)
    return found


def digest(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def check(site: Path, files: dict[str, bytes]) -> None:
    """End with a sentence where a file is not the one that was published."""
    for listed in sorted(name for name in files if name.rpartition("/")[2] == SUMS):
        folder = listed.rpartition("/")[0]
        for line in (site / listed).read_text(encoding="utf-8").splitlines():
            wanted, _, name = line.partition("  ")
            whole = f"{folder}/{name}".lstrip("/")
            if whole not in files or files[whole].hex() != wanted:
                what = "is missing" if whole not in files else "is not the file that was published"
                sys.exit(f"{site / whole} {what}; publish that run again: cadge publish --to {site}")


def told(site: Path, files: dict[str, bytes], changed: int) -> str:
    """Return what is printed."""
    lines = "".join(f"{files[name].hex()}  {name}\n" for name in sorted(files))
    about = {
        "release": hashlib.sha256(lines.encode()).hexdigest()[:16],
        "index_sha256": files["index.html"].hex() if "index.html" in files else "",
        "files": len(files),
        "bytes": sum((site / name).stat().st_size for name in files),
        "changed": changed,
    }
    return json.dumps(about) + "\n"


def pack(site: Path, files: dict[str, bytes], archive: Path) -> None:
    """Write the tar file, the marker last, readable for everybody."""
    folders = sorted({str(parent) for name in files for parent in Path(name).parents} - {"."})
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            entry.mtime = int((site / MARKER).stat().st_mtime)
            tar.addfile(entry)
        for name in sorted(files, key=lambda one: (one == MARKER, one)):
            entry = tarfile.TarInfo(name)
            content = (site / name).read_bytes()
            entry.size, entry.mode = len(content), 0o644
            # not 1970: caches and `If-Modified-Since` go by it
            entry.mtime = int((site / name).stat().st_mtime)
            tar.addfile(entry, io.BytesIO(content))


def listed(folder: Path, sums: str) -> dict[str, str]:
    """Return what a list of checksums says of the files below its own folder: digest by name, below FOLDER."""
    path, top = folder / sums, sums.rpartition("/")[0]
    if not path.is_file():
        return {}
    pairs = (line.partition("  ")[::2] for line in path.read_text(encoding="utf-8").splitlines())
    named = {name: wanted for wanted, name in pairs if name and not {"", ".", ".."} & {*name.split("/")}}
    return {f"{top}/{name}".lstrip("/"): wanted for name, wanted in named.items()}


def left_over(files: dict[str, bytes], folder: Path) -> list[str]:
    """Return what the site brought earlier and has no more. What somebody changed since is theirs."""
    sums = [name for name in files if name.rpartition("/")[2] == SUMS]
    earlier = {name: wanted for one in sums for name, wanted in listed(folder, one).items() if name not in files}
    there = {name: folder / name for name in earlier if (folder / name).is_file() and not (folder / name).is_symlink()}
    return [name for name, path in sorted(there.items()) if digest(path).hex() == earlier[name]]


def place(site: Path, files: dict[str, bytes], folder: Path, *, dry: bool) -> int:
    """Write what is new or differs, each file at once, and remove what is left over; return how many there were."""
    differ = [name for name in files if not (folder / name).is_file() or digest(folder / name) != files[name]]
    if not (folder / MARKER).is_file() and (taken := [name for name in differ if (folder / name).exists()]):
        sys.exit(f"{folder} holds {', '.join(taken[:3])} of somebody else; nothing was changed. Name another folder")
    gone = left_over(files, folder)
    for name in sorted(differ, key=lambda one: (one == MARKER, one)):
        if not dry:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            part.write_bytes((site / name).read_bytes())
            part.replace(target)
    for name in gone:
        if not dry:
            (folder / name).unlink()
    return len(differ) + len(gone)


def main(argv: list[str]) -> None:
    """Do what the command line says."""
    dry = "--dry-run" in argv
    verb, site, target = (one for one in argv if one != "--dry-run")
    files = files_of(Path(site))
    check(Path(site), files)
    changed = 0
    if verb == "pack":
        pack(Path(site), files, Path(target))
    else:
        changed = place(Path(site), files, Path(target), dry=dry)
    sys.stdout.write(told(Path(site), files, changed))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename or ''}: {error.strerror or error}")
