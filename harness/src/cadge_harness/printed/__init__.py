# SPDX-License-Identifier: BSD-3-Clause
"""What tools of other projects print, as series of numbers: text in, no process started, no file read.

Cross-checks (`native`) and imports of a user's own files (`imports`) read with the same code.
"""
