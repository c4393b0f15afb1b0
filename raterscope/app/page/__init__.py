"""Pages for people: facts, tables, pictures and sentences, written as HTML or PDF."""
