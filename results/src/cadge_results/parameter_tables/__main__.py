# SPDX-License-Identifier: BSD-3-Clause
"""python -m cadge_results.parameter_tables FOLDER NAME.pattern.yml ...: what the driver's build runs."""

import sys

from cadge_results.parameter_tables import main

sys.exit(main(sys.argv[1:]))
