"""What does a client weigh that waits? Ten thousand idle connections, requests that sleep, and WebSockets."""
