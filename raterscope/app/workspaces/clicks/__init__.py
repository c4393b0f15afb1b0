"""The clicks workspace: the expert reviews the disputed detections of an image."""
