"""Programs around the Go and JavaScript of docs/clients.md."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.clients.programs import SOURCES, kafkajs, need, run

_SECONDS: Final = 120.0
_FRANZ: Final = """package main

import (
	"context"
	"fmt"
	%s
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	%s
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for seen := 0; seen < %d; {
		client.PollFetches(context.Background()).EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			seen++
		})
	}
}
"""
_SECURED_FRANZ: Final = '"crypto/tls"\n"crypto/x509"\n"os"\n"github.com/twmb/franz-go/pkg/sasl/scram"'
_SARAMA: Final = """package main

import (
	"context"
	"fmt"
	%s
	"github.com/IBM/sarama"
)

type member struct {
	left int
	stop context.CancelFunc
	lock chan struct{}
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, is_open := <-claim.Messages():
			if !is_open {
				return nil
			}
			m.lock <- struct{}{}
			fmt.Println(string(record.Value))
			m.left--
			if m.left == 0 {
				m.stop()
			}
			<-m.lock
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	%s
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	reading := &member{left: %d, stop: stop, lock: make(chan struct{}, 1)}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{"orders"}, reading); err != nil && ctx.Err() == nil {
			panic(err)
		}
	}
	group.Close()
}
"""
_KAFKAJS: Final = """import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
const { Kafka } = kafkajs;
%s
let left = %d;
let done;
const all = new Promise((resolve) => (done = resolve));
function handle(value) {
  process.stdout.write(value.toString() + "\\n");
  left -= 1;
  if (left === 0) done();
}
%s
await all;
await consumer.disconnect();
"""
PROGRAMS: Final[Mapping[tuple[str, bool], str]] = {
    ("franz", False): "",
    ("franz", True): _SECURED_FRANZ,
    ("sarama", False): "",
    ("kafkajs", False): "",
    ("kafkajs", True): "",
}
"""The blocks by their mark, and whether they are for a server with authentication, and their imports."""


def program(mark: str, code: str, count: int, imports: str) -> str:
    match mark:
        case "franz":
            return _FRANZ % (imports, code, count)
        case "sarama":
            return _SARAMA % (imports, code, count)
        case _:
            return _KAFKAJS % (imports, count, code)


def printed(mark: str, source: str, scratch: Path, folder: Path) -> list[bytes]:
    command: list[str | Path]
    if mark == "kafkajs":
        kafkajs(scratch)
        made = scratch / "javascript" / "documented.mjs"
        made.write_text(source, encoding="utf-8")
        command = ["node", made]
    else:
        need("go")
        home = scratch / f"go-{mark}"
        home.mkdir(exist_ok=True)
        for value in ("go.mod", "go.sum"):
            shutil.copy(SOURCES / "go" / value, home)
        (home / "main.go").write_text(source, encoding="utf-8")
        run("go", "build", "-o", "documented", ".", folder=home)
        command = [home / "documented"]
    silent = {**os.environ, "KAFKAJS_LOG_LEVEL": "NOTHING"}  # it logs to the stream of the values
    done = subprocess.run(command, cwd=folder, env=silent, capture_output=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.splitlines()
