# SPDX-License-Identifier: BSD-3-Clause
"""Several builds of a library side by side: where they come from, and what the build of layers is told of them."""
