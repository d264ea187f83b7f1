"""Agent programs of other vendors, driven by their own protocols; they run the calls themselves."""
