"""`tricorn tune` beside the best of an exhaustive comparison, for eight applications."""
