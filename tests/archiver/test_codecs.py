"""The list of codecs."""

from __future__ import annotations

from typing import get_args

import pytest
from kafka.record.default_records import DefaultRecordBase

from archiver.cli.replay import Compression
from archiver.codecs import CODEC_WORDS, Codec
from archiver.config.model import ServedCompression


def test_numbers_are_the_protocol_s() -> None:
    names = {name.removeprefix("CODEC_"): name for name in vars(DefaultRecordBase) if name.startswith("CODEC_")}
    names.pop("MASK", None)
    assert {name: getattr(DefaultRecordBase, attribute) for name, attribute in names.items()} == {
        codec.name: codec.value for codec in Codec
    }


@pytest.mark.parametrize("codec", Codec)
def test_a_word_names_its_codec(codec: Codec) -> None:
    assert Codec.named(codec.word) is codec


def test_options_and_settings_take_every_codec() -> None:
    assert tuple(Compression) == CODEC_WORDS
    assert get_args(ServedCompression) == ("original", *CODEC_WORDS)
