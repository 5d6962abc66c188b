"""An empty configuration file, for `command.become_server`."""
