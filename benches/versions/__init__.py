"""What a change costs: this checkout beside another revision of it."""
