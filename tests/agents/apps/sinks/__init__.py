"""One module for each agent: how an application starts it, and how what it would send becomes notes."""
