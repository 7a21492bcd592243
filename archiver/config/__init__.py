"""The configuration: `archiver.toml` and the environment as one frozen, validated value."""

from archiver.config.load import Config, load_config
from archiver.config.model import FormatConfig, ProtobufFormat, RawFormat, TopicConfig

__all__ = ["Config", "FormatConfig", "ProtobufFormat", "RawFormat", "TopicConfig", "load_config"]
