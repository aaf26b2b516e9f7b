"""Tables as people read them: on a terminal, in Markdown, LaTeX, CSV and JSON."""
