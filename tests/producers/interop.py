"""Serializers of other languages write messages; measures the share kept raw.

Usage: interop.py SCRATCH_FOLDER [--record]: builds each program whose toolchain is there. Fails if messages or share
differ from tests/vectors/producers; `--record` replaces them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from schema_mapping import compile_mapping
from tests.producers.content import COUNTS, FOLDER, content, descriptor, descriptor_set, read_vector, write_vector
from tests.support.schemas.upb_judge import parse

PROTOBUF_JAVA = "4.33.2"
GO_PLUGIN = "google.golang.org/protobuf/cmd/protoc-gen-go"
NO_GROUPS = tuple(name for name in COUNTS if name != "producers.Claim")


def run(*command: str | Path, folder: Path, given: bytes = b"") -> bytes:
    done = subprocess.run([str(part) for part in command], cwd=folder, input=given, stdout=subprocess.PIPE, check=True)
    return done.stdout


def written_by(command: Sequence[str | Path], folder: Path, messages: Sequence[str]) -> dict[str, list[bytes]]:
    given = [(message, value) for message in messages for value in content(message)]
    framed = b"".join(_frame(message.encode()) + _frame(value) for message, value in given)
    output = run(*command, folder=folder, given=framed)
    payloads: dict[str, list[bytes]] = {}
    at = 0
    for message, _ in given:
        size = int.from_bytes(output[at : at + 4], "little")
        payloads.setdefault(message, []).append(output[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(output)
    return payloads


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _fetch(artifact: str, scratch: Path) -> None:
    run("mvn", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}", folder=scratch)


def _protoc(scratch: Path) -> Path:
    path = scratch / f"protoc-{PROTOBUF_JAVA}-linux-x86_64.exe"
    if not path.exists():
        _fetch(f"com.google.protobuf:protoc:{PROTOBUF_JAVA}:exe:linux-x86_64", scratch)
        path.chmod(0o755)
    return path


def go(scratch: Path) -> dict[str, list[bytes]]:
    home = scratch / "go"
    shutil.copytree(FOLDER / "go", home, dirs_exist_ok=True)
    plugin = scratch / "protoc-gen-go"
    run("go", "build", "-mod=mod", "-o", plugin, GO_PLUGIN, folder=home)
    out = (f"--plugin=protoc-gen-go={plugin}", f"--go_out={home.parent}")
    sources = (FOLDER / "order.proto", FOLDER / "claim.proto")
    run(sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", *out, *sources, folder=home)
    for name in ("order", "claim"):
        shutil.copytree(scratch / "producers" / name, home / name, dirs_exist_ok=True)
    run("go", "build", "-mod=mod", "-o", scratch / "produce-go", ".", folder=home)
    return written_by([scratch / "produce-go"], scratch, tuple(COUNTS))


def java(scratch: Path) -> dict[str, list[bytes]]:
    protoc = _protoc(scratch)
    jar = scratch / f"protobuf-java-{PROTOBUF_JAVA}.jar"
    if not jar.exists():
        _fetch(f"com.google.protobuf:protobuf-java:{PROTOBUF_JAVA}", scratch)
    sources = scratch / "java"
    sources.mkdir(exist_ok=True)
    run(
        protoc,
        f"-I{FOLDER}",
        f"-I{_well_known()}",
        f"--java_out={sources}",
        "order.proto",
        "claim.proto",
        folder=FOLDER,
    )
    files = [FOLDER / "java" / "Produce.java", *sorted((sources / "producers").glob("*.java"))]
    run("javac", "-nowarn", "-cp", jar, "-d", scratch / "classes", *files, folder=scratch)
    return written_by(["java", "-cp", f"{jar}:{scratch / 'classes'}", "Produce"], scratch, tuple(COUNTS))


def _well_known() -> Path:
    import grpc_tools

    return Path(grpc_tools.__file__).parent / "_proto"


def _javascript(scratch: Path) -> Path:
    home = scratch / "javascript"
    shutil.copytree(FOLDER / "javascript", home, dirs_exist_ok=True)
    if not (home / "node_modules").exists():
        run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=home)
    return home


def protobufjs(scratch: Path) -> dict[str, list[bytes]]:
    """protobufjs with only the set fields."""
    return written_by(["node", "protobufjs.mjs", FOLDER], _javascript(scratch), NO_GROUPS)


def protobufjs_defaults(scratch: Path) -> dict[str, list[bytes]]:
    """protobufjs with every scalar field, as applications often use it."""
    return written_by(["node", "protobufjs.mjs", FOLDER, "defaults"], _javascript(scratch), NO_GROUPS)


def protobuf_es(scratch: Path) -> dict[str, list[bytes]]:
    home = _javascript(scratch)
    (home / "schema.binpb").write_bytes(descriptor_set())
    return written_by(["node", "protobuf-es.mjs", "schema.binpb"], home, tuple(COUNTS))


def prost(scratch: Path) -> dict[str, list[bytes]]:
    """prost for Rust, which lacks groups and unknown fields."""
    home = scratch / "rust"
    shutil.copytree(FOLDER / "rust", home, dirs_exist_ok=True)
    for name in ("order.proto", "claim.proto"):
        shutil.copy(FOLDER / name, scratch)
    protoc = f"PROTOC={_protoc(scratch)}"
    run("env", protoc, f"PROTOC_INCLUDE={_well_known()}", "cargo", "build", "--quiet", "--release", folder=home)
    return written_by([home / "target" / "release" / "producers"], scratch, NO_GROUPS)


PRODUCERS: dict[str, tuple[Callable[[Path], dict[str, list[bytes]]], tuple[str, ...]]] = {
    "go": (go, ("go",)),
    "java": (java, ("javac", "mvn")),
    "prost": (prost, ("cargo", "mvn")),
    "protobuf-es": (protobuf_es, ("node", "npm")),
    "protobufjs": (protobufjs, ("node", "npm")),
    "protobufjs-defaults": (protobufjs_defaults, ("node", "npm")),
}


def kept_raw(message: str, values: list[bytes]) -> int:
    """Count values that columns alone don't give back; encode must give all."""
    mapping = compile_mapping(descriptor(message))
    rows = mapping.decode(pa.array(values, pa.binary()))
    assert mapping.encode(rows).to_pylist() == values
    assert rows.field("__err__").null_count == len(values)
    return len(values) - int(rows.field("__raw__").null_count)


def _as_messages(written: dict[str, list[bytes]]) -> list[str]:
    # Maps come in any order, and each run of Go has another.
    return [
        f"{message} {parse(descriptor(message), value).SerializePartialToString(deterministic=True).hex()}"
        for message, values in written.items()
        for value in values
    ]


def main(scratch: Path, *, record: bool) -> None:
    ran = 0
    for name, (produce, tools) in PRODUCERS.items():
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if missing:
            print(f"{name}: passed over, there is no {' and no '.join(missing)} here")  # noqa: T201 - a command
            continue
        written = produce(scratch)
        shares = {message: kept_raw(message, values) for message, values in written.items()}
        text = ", ".join(f"{message} {raw} of {len(written[message])}" for message, raw in shares.items())
        print(f"{name}: kept raw of {text}")  # noqa: T201
        if record:
            write_vector(name, written)
        kept = read_vector(name)
        if _as_messages(kept) != _as_messages(written):
            raise SystemExit(
                f"{name} now writes other messages than tests/vectors/producers has: make interop RECORD=1"
            )
        if shares != {message: kept_raw(message, values) for message, values in kept.items()}:
            raise SystemExit(
                f"{name} now writes in another form than in tests/vectors/producers: make interop RECORD=1"
            )
        ran += 1
    if not ran:
        raise SystemExit("no producer could be built here: Go, Java with Maven, Node.js or Rust is needed")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), record="--record" in sys.argv)
