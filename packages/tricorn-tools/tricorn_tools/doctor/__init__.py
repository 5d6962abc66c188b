"""`tricorn doctor`: what blocks a worker, or will.

* `engine.py`: asks the core what each thread of a process does; `source.py`: the lines of source that frames stand at;
  `text.py`: the report for people.
* `check`: what can be known of an application and its settings without load.
"""
