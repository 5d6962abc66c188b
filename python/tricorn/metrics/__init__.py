"""What workers do, told by the shared memory their cores write."""
