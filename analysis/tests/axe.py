# SPDX-License-Identifier: BSD-3-Clause
"""axe-core in a page that a browser shows: which rules of WCAG 2.1, levels A and AA, it breaks.

axe-core comes from npm by `ci/setup axe`, into build/; it is in no page, no package and no commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chromium import Browser

PROGRAM = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
"""Sets of rules; `best-practice` holds those on landmarks and on the order of headings."""
_RUN = """
axe.run(document, {runOnly: {type: "tag", values: %s}, resultTypes: ["violations"]}).then(found => JSON.stringify(
  found.violations.map(one => one.id + ": " + one.nodes.length + ", first " + one.nodes[0].html.slice(0, 200))))
"""


def violations(browser: Browser) -> list[str]:
    """Return what the open page breaks, a line a rule: its name, how often, and the first element."""
    browser.send("Runtime.evaluate", expression=PROGRAM.read_text(encoding="utf-8"))
    ask = {"expression": _RUN % json.dumps(RULES), "awaitPromise": True, "returnByValue": True}
    answer = browser.send("Runtime.evaluate", **ask)
    if "exceptionDetails" in answer:
        raise RuntimeError(str(answer["exceptionDetails"]))
    found: list[Any] = json.loads(answer["result"]["value"])
    return [str(one) for one in found]
