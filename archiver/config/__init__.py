"""Reads `archiver.toml` and the environment into a frozen `Config`."""

from archiver.config.formats import FormatConfig, ProtobufFormat, RawFormat
from archiver.config.load import Config, load_config
from archiver.config.model import AuditSection, TopicConfig

__all__ = ["AuditSection", "Config", "FormatConfig", "ProtobufFormat", "RawFormat", "TopicConfig", "load_config"]
