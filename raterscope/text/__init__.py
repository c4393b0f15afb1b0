"""Numbers, units and names written as text."""
