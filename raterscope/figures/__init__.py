"""Charts, drawn as pixels for a report or as SVG for a separate file."""
