"""The greenlet workers' ground: patched modules, cooperative drivers."""
