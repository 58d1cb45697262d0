# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a report's first screen, for a README: `first_screen.py REPORT FOLDER`.

Writes first-screen-light.webp and first-screen-dark.webp, of at most 200 kB each, with headless Chromium.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "analysis/tests"))

from chromium import Browser, find  # noqa: E402 - found by the line above

MOST_BYTES = 200_000
WIDTH_PX, HEIGHT_PX = 1280, 1000
QUALITIES = (90, 75, 60, 45)


def name_of(*, dark: bool) -> str:
    """Return a picture's file name."""
    return f"first-screen-{'dark' if dark else 'light'}.webp"


def pictures(report: Path, folder: Path) -> list[Path]:
    """Write both pictures, and return them. Ends with a sentence where there is no Chromium or one is too large."""
    program = find()
    if program is None:
        sys.exit("no Chromium was found, which makes the pictures; install it: apt-get install chromium")
    made = []
    with Browser(program) as browser:
        for dark in (False, True):
            browser.open(report, width=WIDTH_PX, height=HEIGHT_PX, dark=dark)
            content = next((one for quality in QUALITIES if len(one := _webp(browser, quality)) <= MOST_BYTES), None)
            if content is None:
                sys.exit(f"{name_of(dark=dark)} is larger than {MOST_BYTES} bytes at every quality that can be read")
            made.append(folder / name_of(dark=dark))
            made[-1].write_bytes(content)
    return made


def _webp(browser: Browser, quality: int) -> bytes:
    return base64.b64decode(browser.send("Page.captureScreenshot", format="webp", quality=quality)["data"])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for path in pictures(Path(sys.argv[1]), Path(sys.argv[2])):
        print(f"{path}: {path.stat().st_size} bytes")
