"""Build tables of any format, and add batches to them."""
