from typing import Final

WORDS: Final[dict[str, tuple[str, ...]]]
