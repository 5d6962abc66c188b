"""What event-loop workers cost: requests, WebSockets, and many that wait."""
