"""Whether published schemas (tests/vectors/real_schemas) compile, and how fast."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from google.protobuf.descriptor import Descriptor

from schema_mapping import compile_mapping
from schema_mapping.columns.expansion import CutReason
from schema_mapping.errors import SchemaMappingError
from tests.support.schemas.real_schemas import PACKAGES, messages


@dataclass(slots=True)
class Line:
    messages: int = 0
    fields: int = 0
    recursive: int = 0
    cut: int = 0
    failures: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_name: str = ""

    def add(self, name: str, descriptor: Descriptor) -> None:
        self.messages += 1
        self.fields += len(descriptor.fields)
        started = time.perf_counter()
        try:
            mapping = compile_mapping(descriptor)
            mapping.program  # noqa: B018 - compiled on first use
        except SchemaMappingError as error:
            self.failures += 1
            print(f"{name}: {error}", file=sys.stderr)
            return
        took = time.perf_counter() - started
        self.seconds += took
        if took > self.slowest:
            self.slowest, self.slowest_name = took, name
        reasons = {cut.reason for cut in mapping.cuts}
        self.recursive += CutReason.RECURSION in reasons
        self.cut += bool(reasons - {CutReason.RECURSION})


def main() -> int:
    head = ("package", "messages", "fields", "recursive", "cut by limits", "failures", "all, s", "slowest, ms", "which")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    failures = 0
    for package in PACKAGES:
        line = Line()
        for name, descriptor in messages(package).items():
            line.add(name, descriptor)
        failures += line.failures
        counts = (line.messages, line.fields, line.recursive, line.cut, line.failures)
        times = (f"{line.seconds:.1f}", f"{line.slowest * 1000:.0f}", line.slowest_name)
        print("| " + " | ".join(map(str, (package, *counts, *times))) + " |", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
