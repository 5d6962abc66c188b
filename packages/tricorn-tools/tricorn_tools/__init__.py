"""Tools around the server: `tricorn top`, `doctor`, `init` and `dev-cert`."""
