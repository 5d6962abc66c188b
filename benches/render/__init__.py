"""Pages that show measurements, rendered from the runs that are kept."""
