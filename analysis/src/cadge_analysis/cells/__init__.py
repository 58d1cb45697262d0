# SPDX-License-Identifier: BSD-3-Clause
"""One table of cells: every planned point is a row, every quantity one entry of a catalogue.

An entry holds what programs read (fields: name, kind, meaning) and what people read (heading, unit, text). Exports,
tables for questions in SQL and the tables of a report are lists of the same entries.
"""
