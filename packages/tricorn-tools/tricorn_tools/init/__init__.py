"""`tricorn init KIND`: files for what runs a server, or stands in front of it, from the resolved configuration.

    words ─ request.py ─> Service ─ systemd.py, docker.py … ─> files and notes ─ command.py ─> stdout or a directory

A renderer is a pure function of a `Service`. A comment beside each value says from which settings it follows.
"""
