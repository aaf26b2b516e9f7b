"""How good a model is and how sure it may be, from bags alone: no label of a row."""
