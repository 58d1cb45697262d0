# SPDX-License-Identifier: BSD-3-Clause
"""From numbers and pictures to pages: views, tables, sentences, templates."""
