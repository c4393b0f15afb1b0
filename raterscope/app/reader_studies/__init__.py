"""Reader studies: several readers mark the same cases, blinded, once or repeatedly.

`protocol` reads the description of a study, `set_up` makes one reading file for each reader, `reading_file`
stores a reader's marks, and `collecting` merges the files into one study.
"""
