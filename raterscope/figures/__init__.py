"""Charts that are drawn as pixels for a report or as SVG for a file of their own."""
