# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the analysis. Each carries the exit code that the command ends with.

::

    AnalysisError
    ├── NoDataError    5    the campaign holds nothing that could be shown
    ├── BadInputError  2    an argument or an environment variable is wrong
    │   └── TooLongError    a question was not answered in the time that it was given
    ├── SimulatorMissingError  3  this machine has no SimGrid
    ├── ExtraMissingError  3  a package is needed that is not part of the core
    └── PictureError   70   a chart could not be drawn: a bug of ours
        └── NoRendererError  3  the program that draws has ended, or cannot be started
"""

from __future__ import annotations


class AnalysisError(Exception):
    """Base of everything that the analysis raises on purpose."""

    exit_code = 70


class NoDataError(AnalysisError):
    """The campaign planned nothing."""

    exit_code = 5


class BadInputError(AnalysisError):
    """The caller asked for something that cannot be done."""

    exit_code = 2


class TooLongError(BadInputError):
    """A question was not answered in the time that it was given."""


class SimulatorMissingError(AnalysisError):
    """A simulation was asked for, and this machine has no SimGrid."""

    exit_code = 3


class ExtraMissingError(AnalysisError):
    """Something was asked for that needs an optional package; the message has the command that installs it."""

    exit_code = 3


class PictureError(AnalysisError):
    """The renderer refused a specification that we made."""

    exit_code = 70


class NoRendererError(PictureError):
    """The program that draws has ended, or cannot be started: there are no pictures on this machine, as it is."""

    exit_code = 3
