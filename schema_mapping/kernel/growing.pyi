COLUMNS: dict[str, int]
