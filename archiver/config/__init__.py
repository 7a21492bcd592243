"""The configuration: reads `archiver.toml` and the environment into one frozen, validated `Config`.

`sources` reads and merges settings, `model` validates them, `load` puts a `Config` together. What settings lead to
doesn't belong here: other rooms read the values.
"""

from archiver.config.formats import FormatConfig, ProtobufFormat, RawFormat
from archiver.config.load import Config, load_config
from archiver.config.model import AuditSection, TopicConfig

__all__ = ["AuditSection", "Config", "FormatConfig", "ProtobufFormat", "RawFormat", "TopicConfig", "load_config"]
