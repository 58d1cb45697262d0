# SPDX-License-Identifier: BSD-3-Clause
"""From a stored campaign to a report: loading, statistics, comparison, pictures, pages and exports.

Nothing here measures, starts anything or writes into the raw store. Data flow inside the package::

    stats/: load -> compare -> draw/: plots -> page/: views -> render     (report.build)
                            -> export                                    (export.write)

Templates receive finished strings; every number is formatted in `units`.
"""
