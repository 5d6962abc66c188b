"""The command lines of `tricorn top`, `doctor` and `dev-cert`."""
