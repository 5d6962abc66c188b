"""A result as text, as Markdown, and as a page with charts."""
