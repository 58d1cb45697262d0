# SPDX-License-Identifier: BSD-3-Clause
"""Whether a campaign can be written where it goes, before anything is measured for it."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cadge_harness.errors import UnfitError
from cadge_harness.testbed.model import TestbedKind

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

OF_HOSTS = Path(".cache", "cadge")
"""Where a host keeps what it is brought, below the home of the user there (playbooks/group_vars/all.yml)."""


def check_room(results: Path, testbed: Testbed, *, stored_bytes: int, carried_bytes: int) -> None:
    """Raise UnfitError where a campaign cannot be stored in `results`, or its hosts on this machine have no room.

    stored_bytes: what the campaign will be; carried_bytes: what every host is brought, which lies packed beside the
    campaign meanwhile. Hosts of a cluster say it themselves when they are prepared.
    """
    _check_writable(results, "choose another folder with --results")
    needs = {_existing(results): stored_bytes + carried_bytes}
    if testbed.kind is not TestbedKind.CLUSTER:
        # a login to an emulated host asks the accounts for the home, this machine's own processes ask HOME
        home = Path.home() if testbed.kind is TestbedKind.LOCAL else Path(pwd.getpwuid(os.geteuid()).pw_dir)
        _check_writable(home / OF_HOSTS, "hosts of this machine keep there what they run: set HOME to another")
        folder = _existing(home / OF_HOSTS)
        needs[folder] = needs.get(folder, 0) + len(testbed.hosts) * carried_bytes
    for folder, bytes_needed in needs.items():
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < bytes_needed:
            raise UnfitError(
                f"{folder} has {free_bytes / 1e6:.0f} MB free, and this campaign needs up to "
                f"{bytes_needed / 1e6:.0f} MB there while it runs"
            )


def _check_writable(folder: Path, what: str) -> None:
    """Try it: what root may do, a file system need not."""
    try:
        Path(tempfile.mkdtemp(prefix=".cadge-", dir=_existing(folder))).rmdir()
    except OSError as error:
        raise UnfitError(f"cannot write {folder}: {error.strerror} ({what})") from error


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that there is."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
