# SPDX-License-Identifier: BSD-3-Clause
"""What the instrument finds out about itself, from campaigns that it made for that."""
