"""The one window: its bars, menus, keys and palette, and what comes in and leaves by it."""
