"""`tricorn doctor`: what each thread of a Python process does, and what blocks it.

* `engine.py`: asks the core, which reads the process without stopping it.
* `source.py`: the lines of source that frames stand at.
* `text.py`: the report for people.
"""

from __future__ import annotations

from tricorn.doctor.engine import DoctorError, Report, look

__all__ = ["DoctorError", "Report", "look"]
