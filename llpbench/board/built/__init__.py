"""What is built from the content: the board, tables, CSV, the page (``page``), and a page of one's own results."""
