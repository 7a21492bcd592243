class ValueColumn:
    def __init__(
        self,
        *,
        validity: int,
        offsets: int,
        data: int,
        prefixes: int,
        writers: int,
        start: int,
        length: int,
        large: bool,
    ) -> None: ...
