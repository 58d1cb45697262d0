# SPDX-License-Identifier: BSD-3-Clause
"""From numbers to pictures: scales, colours, charts, SVG."""
