# SPDX-License-Identifier: BSD-3-Clause
"""From a sweep to blocks: what is to be measured, what is refused and why, and what it takes."""
