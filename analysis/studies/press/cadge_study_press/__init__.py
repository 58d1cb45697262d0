# SPDX-License-Identifier: BSD-3-Clause
"""An application on the layers, as the study of PRESS asks: what its requests take, by layer and version."""

from cadge_study_press.parts import sections
from cadge_study_press.spec import ApplicationOf as Spec

__all__ = ["Spec", "sections"]
