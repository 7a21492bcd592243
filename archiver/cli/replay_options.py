"""Valid combinations of options of `archiver replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archiver.errors import ConfigError


def check_together(*, to_file: Mapping[str, object], to_kafka: Mapping[str, object], is_to_kafka: bool) -> None:
    """Raises ConfigError for options without effect on this target, and for --decode with Arrow."""
    idle = [name for name, value in (to_file if is_to_kafka else to_kafka).items() if value]
    if idle:
        where = "without" if is_to_kafka else "with"
        raise ConfigError(f"{', '.join(idle)} has an effect only {where} --to-kafka", options=tuple(idle))
    if to_file["--decode"] and to_file["--format"] == "arrow":
        raise ConfigError("--decode goes with --format jsonl: an Arrow stream has keys and values as bytes")
    if to_kafka["--topic-setting"] and not to_kafka["--create"]:
        raise ConfigError("--topic-setting goes with --create: a topic that is there keeps its settings")


def topic_settings(pairs: Iterable[str]) -> dict[str, str]:
    """Raises ConfigError."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise ConfigError("--topic-setting is no setting: write name=value", found=pair)
        settings[name.strip()] = value.strip()
    return settings
