from typing import Final

HARDWARE: Final[bool]

def checksum(data: bytes, *, hardware: bool = ...) -> int: ...
