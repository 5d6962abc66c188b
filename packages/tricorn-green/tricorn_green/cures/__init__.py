"""Cures of libraries that wait in C: what waits is called by a thread, and the application is as it was.

    replace     classes in C by subclasses, methods of classes in Python, proxies where neither can be done
    asked       what the setting `offload` names
    kafka, curl, sqlite, …     one library each

The server's import hook applies them when the library has been executed, before anything can take names from it.
"""
