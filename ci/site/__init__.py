# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the repository as a site: `make site`."""
