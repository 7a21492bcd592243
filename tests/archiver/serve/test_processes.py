"""Several processes of a server."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.serve.processes import Processes, share, shifted
from tests.support.timing.eventually import eventually

MINIMAL = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[catalog]
uri = "http://127.0.0.1:8181"
[registry]
dsn = "postgresql://archiver@127.0.0.1/archiver"
"""


def works(number: int, folder: str) -> None:
    Path(folder, f"{number}.{os.getpid()}").touch()
    threading.Event().wait(60)


def misses_something(number: int) -> None:
    if number == 0:
        threading.Event().wait(60)
    os._exit(2)


def started(folder: Path, number: int) -> list[int]:
    return [int(path.suffix[1:]) for path in folder.glob(f"{number}.*")]


def wait_for(folder: Path, number: int, count: int) -> list[int]:
    eventually(lambda: len(started(folder, number)) >= count, f"process {number} has started {count} times")
    return started(folder, number)


def test_who_dies_starts_again_and_a_signal_ends_all(tmp_path: Path) -> None:
    processes = Processes(works, 2, str(tmp_path), first_delay=0.1)

    def course() -> None:
        (first,) = wait_for(tmp_path, 0, 1)
        wait_for(tmp_path, 1, 1)
        os.kill(first, signal.SIGKILL)
        wait_for(tmp_path, 0, 2)
        os.kill(os.getpid(), signal.SIGTERM)

    acting = threading.Thread(target=course)
    acting.start()
    assert processes.run() == signal.SIGTERM
    acting.join()
    assert len(started(tmp_path, 1)) == 1
    for pid in [*started(tmp_path, 0), *started(tmp_path, 1)]:
        assert not Path(f"/proc/{pid}").exists()


def test_what_no_other_start_would_find_ends_all() -> None:
    began = time.monotonic()
    assert Processes(misses_something, 2).run() == -2
    assert time.monotonic() - began < 30


def test_each_has_its_ports_its_id_and_its_part_of_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    addresses = 'listen = "127.0.0.1:9192"\nadvertise = "[::1]:9392"\nmetrics = "127.0.0.1:9464"'
    file.write_text(MINIMAL + f'[serve]\n{addresses}\nnode_id = 10\ncache_size = "64MiB"\n')
    config = load_config(file, {})
    second = load_config(file, share(config, 1, 4))
    assert (second.serve.listen, second.serve.advertise) == ("127.0.0.1:9193", "[::1]:9393")
    assert (second.serve.node_id, second.serve.cache_size) == (11, 16 << 20)
    assert second.serve.response_memory == config.serve.response_memory // 4
    assert second.serve.metrics == "127.0.0.1:9465"
    plain = tmp_path / "plain.toml"
    plain.write_text(MINIMAL)
    assert load_config(plain, share(load_config(plain, {}), 1, 2)).serve.node_id is None


def test_ports_end(tmp_path: Path) -> None:
    assert shifted("0.0.0.0:0", 3, "serve.listen") == "0.0.0.0:0"
    with pytest.raises(ConfigError, match="no ports"):
        shifted("127.0.0.1:65535", 1, "serve.listen")
