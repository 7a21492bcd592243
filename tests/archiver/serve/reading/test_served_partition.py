"""A server's knowledge only grows."""

from __future__ import annotations

from archiver.serve.reading.served_partition import ServedPartition


def test_ends_and_epochs_never_go_back() -> None:
    served = ServedPartition()
    served.grow(10, 3)
    served.grow(5, 1)
    assert (served.end, served.leader_epoch) == (10, 3)
    served.learn_begin(4)
    assert served.end == 10
    served.learn_begin(20)
    assert served.end == 20


def test_a_start_is_kept_until_a_begin_is_learned() -> None:
    served = ServedPartition()
    assert served.start(None) is None
    assert served.keep_start(7, None) == 7
    assert served.start(None) == 7
    assert served.start(1) is None
    served.learn_begin(None)
    assert served.start(None) is None
    assert served.is_begin_known
