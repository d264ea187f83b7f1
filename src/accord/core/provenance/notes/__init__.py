"""Git notes and the records in them."""
