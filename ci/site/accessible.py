# SPDX-License-Identifier: BSD-3-Clause
"""What the theme's pages lack for those who use no mouse, or a screen reader (WCAG 2.1 AA, as axe-core judges it).

A heading's level (4.1.2), wide tables and code that can be scrolled by keys (2.1.1), names of
what stands aside, and no head that says nothing.
"""

MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div class="table-wrapper ': '<div tabindex="0" role="group" aria-label="Table" class="table-wrapper ',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    "<pre>": '<pre tabindex="0">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
}


def mended(html: str) -> str:
    """Return a page of the site with that."""
    for old, new in MENDED.items():
        html = html.replace(old, new)
    return html
