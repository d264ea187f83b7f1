"""What each store promises beyond the port."""
