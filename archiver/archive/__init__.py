"""Reading an archive: the table's files, what is deleted of them, and the records that their rows stand for."""
