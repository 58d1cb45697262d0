# SPDX-License-Identifier: BSD-3-Clause
"""What a host is, has and can do, and whether it fits what is planned on it."""

from __future__ import annotations
