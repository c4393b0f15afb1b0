"""Pages of facts, tables, pictures and sentences, written as HTML or PDF."""
