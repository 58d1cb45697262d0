# SPDX-License-Identifier: BSD-3-Clause
"""Build the site: lay out the pages, make the reference and the example, run Sphinx, check what came of it.

build/site/html is the site. Exit 0 where it is whole; 1 where Sphinx warned or a link leads nowhere.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ci.site import accessible, check_built, example, reference
from ci.site.stage import pages, stage, whole
from sphinx.cmd.build import main as sphinx  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/site"
EXAMPLE_PAGE = f"""# An example

A report of made-up numbers, whole and as `cadge report` writes it; [its sections explained](analysis/READING.md).

<iframe class="report" style="height: 80vh" title="The example report" src="{example.REPORT}"></iframe>

<a href="{example.REPORT}">The report alone</a>
"""


def main() -> int:
    """Build and check; return the exit status."""
    source, html = BUILD / "source", BUILD / "html"
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    report = example.report()
    pieces = example.sections(report)
    made = {**reference.made(ROOT), "example.md": EXAMPLE_PAGE}
    for name, text in pages(ROOT).items():
        if example.PLACE.search(text):
            made[name] = example.filled(name, text, pieces)
    stage(ROOT, source, made)
    options = ["-q", "-W", "--keep-going", "-E", "-c", str(ROOT / "ci/site"), "-d", str(BUILD / "trees"), "-b", "html"]
    status = sphinx([*options, str(source), str(html)])
    if status:
        return 1
    for path in html.rglob("*.html"):
        path.write_text(accessible.mended(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name in (name for names in whole(ROOT).values() for name in names):
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, html / name)
    (html / "example").mkdir()
    for name, text in {**pieces, Path(example.REPORT).stem: report}.items():
        (html / "example" / f"{name}.html").write_text(text, encoding="utf-8")
    found = list(check_built.wrong(html))
    for one in found:
        print(f"site: {one}", file=sys.stderr)
    if not found:
        print(f"site: {html / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
