"""Main window: bars, menus, keyboard shortcuts, command palette, import, export and session restore."""
