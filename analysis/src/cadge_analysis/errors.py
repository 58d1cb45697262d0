# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the analysis.

::

    AnalysisError
    ├── NoDataError       the campaign holds nothing that could be shown (exit code 5)
    ├── BadCampaignError  a stored file is not what its schema promises (exit code 2)
    └── PictureError      a chart could not be drawn: a bug of ours (exit code 70)
"""

from __future__ import annotations


class AnalysisError(Exception):
    """Base of everything that the analysis raises on purpose."""


class NoDataError(AnalysisError):
    """There is no campaign, or it holds no point at all."""


class BadCampaignError(AnalysisError):
    """A stored file cannot be read as what it claims to be."""


class PictureError(AnalysisError):
    """The renderer refused a specification that we made."""
