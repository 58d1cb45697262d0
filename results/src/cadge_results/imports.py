# SPDX-License-Identifier: BSD-3-Clause
"""Setting an import beside a campaign, and taking it back: see `imported`."""

from __future__ import annotations

from cadge_results.checksum import beside
from cadge_results.errors import FormatError, NotFoundError
from cadge_results.files import explained, settle
from cadge_results.imported import ImportedFile
from cadge_results.store import Campaign
from cadge_results.writer import hold, put_for_ever


def add_import(campaign: Campaign, found: ImportedFile) -> bool:
    """Store an import; False where it is there already, and nothing was changed.

    Raises StoreBusyError where the campaign is being written, StoreUnwritableError, StoreFullError, DamagedError.
    """
    with hold(campaign.path):
        if found.imported_id in campaign.imported_ids():
            campaign.imported_file(found.imported_id)
            return False
        folder = campaign.layout.imported
        with explained(folder):
            folder.mkdir(exist_ok=True)
        put_for_ever(campaign.layout.imported_file(found.imported_id), found.to_json().encode())
    return True


def remove_import(campaign: Campaign, name: str) -> str:
    """Take an import back by its name or by the beginning of it; return the name. Nothing else is touched.

    Raises NotFoundError, FormatError where several begin so, StoreBusyError, StoreUnwritableError.
    """
    with hold(campaign.path):
        every = campaign.imported_ids()
        chosen = [one for one in every if name and one.startswith(name)]
        if not chosen:
            raise NotFoundError(f"no import {name!r} in {campaign.path.name}; there: {', '.join(every) or 'none'}")
        if len(chosen) > 1:
            raise FormatError(f"several imports begin with {name!r}: {', '.join(chosen)}")
        path = campaign.layout.imported_file(chosen[0])
        with explained(path):
            path.unlink()  # first: a kill in between leaves a checksum, which verify names
            beside(path).unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
                settle(campaign.path)
            else:
                settle(path.parent)
    return chosen[0]
