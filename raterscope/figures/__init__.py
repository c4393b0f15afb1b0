"""Charts: their description, layout and drawing, which window and report share."""
