# SPDX-License-Identifier: BSD-3-Clause
"""From numbers to models: parameters that tell more than the points that they were fitted to."""
