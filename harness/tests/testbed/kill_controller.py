# SPDX-License-Identifier: BSD-3-Clause
"""A controller to be killed: runs what is missing of a campaign and stores each launch, as cadge itself does.

kill_controller.py FOLDER TESTBED [--without-ansible]   with FOLDER/blocks.json and FOLDER/build; stores
FOLDER/store/LAUNCH.json. Its exit status is run_campaign's.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from cadge_harness.run import ansible_io
from cadge_harness.testbed import testbeds


def main() -> int:
    """See the head of this file."""
    folder = Path(sys.argv[1])
    store = folder / "store"
    store.mkdir(exist_ok=True)
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())

    def keep(record: dict[str, Any]) -> None:
        part = store / "part"
        part.write_text(json.dumps(record))
        part.replace(store / f"{record['launch']['launch_id']}.json")

    have = {path.stem for path in store.glob("*.json")}
    blocks = json.loads((folder / "blocks.json").read_text())
    for block in blocks:
        block["launches"] = [launch for launch in block["launches"] if launch["launch_id"] not in have]
    blocks = [block for block in blocks if block["launches"]]
    outcome = ansible_io.run_campaign(
        testbeds.resolve(sys.argv[2]),
        blocks,
        folder / "work",
        lambda event: sys.stdout.write(f"{event.model_dump_json()}\n"),
        keep,
        stop,
        build=folder / "build",
        without_ansible="--without-ansible" in sys.argv,
    )
    sys.stdout.write(f"{outcome}\n")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
