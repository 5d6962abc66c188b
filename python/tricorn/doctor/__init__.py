"""`tricorn doctor`: what blocks a worker, or will.

check    what can be known of an application and its settings without load
"""
