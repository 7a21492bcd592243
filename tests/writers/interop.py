"""Has Avro and JSON libraries write values, and looks at what must be kept raw of it.

Usage: interop.py SCRATCH_FOLDER [--record]: builds each program whose toolchain is there, in the folder. Fails if a
library writes other bytes than tests/vectors/writers has of it; `--record` replaces that.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias

import fastavro
import pyspark

from tests.producers.interop import run
from tests.writers.avro_content import avro_cases
from tests.writers.cases import Case, Written, keep, read_cases, written_by
from tests.writers.json_content import json_cases
from tests.writers.judge import raw_share

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
SPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"
Command: TypeAlias = Sequence[str | Path]


class Writer(NamedTuple):
    """`build` returns the command that runs the library. `tools` are the programs that it needs."""

    format: str
    build: Callable[[Path], Command]
    tools: tuple[str, ...] = ()


def python(library: str, scratch: Path) -> Command:
    home = scratch / "python"
    if not home.exists():
        options = ("--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps")
        run(
            sys.executable,
            "-m",
            "pip",
            "install",
            *options,
            "--target",
            home,
            "-r",
            ROOT / "requirements" / "writers.txt",
            folder=scratch,
        )
    return ("env", f"PYTHONPATH={home}", sys.executable, HERE / "python" / "write.py", library)


def java(source: Path, library: str, versions: str, scratch: Path) -> Command:
    program = java_of(*JAVAS[versions])
    assert program is not None
    return (program, "-cp", f"{SPARK_JARS}/*", source, library)


def java_of(oldest: int, newest: int) -> Path | None:
    """Return an installed Java of these versions."""
    installed = shutil.which("java")
    for path in (*([] if installed is None else [Path(installed)]), *sorted(Path("/usr/lib/jvm").glob("*/bin/java"))):
        shown = subprocess.run([path, "-version"], capture_output=True, text=True, check=True).stderr
        version = re.search(r'version "(\d+)', shown)
        if version is not None and oldest <= int(version[1]) <= newest:
            return path
    return None


def javascript(library: str, scratch: Path) -> Command:
    home = scratch / "javascript-writers"
    shutil.copytree(HERE / "javascript", home, dirs_exist_ok=True)
    if not (home / "node_modules").exists():
        run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=home)
    return ("node", home / "write.mjs", library)


def go(library: str, scratch: Path) -> Command:
    home = scratch / "go-writers"
    shutil.copytree(HERE / "go", home, dirs_exist_ok=True)
    run("go", "build", "-mod=mod", "-o", home / "write", ".", folder=home)
    return (home / "write", library)


def rust(library: str, scratch: Path) -> Command:
    home = scratch / "rust-writers"
    shutil.copytree(HERE / "rust", home, dirs_exist_ok=True)
    run("cargo", "build", "--quiet", "--release", folder=home)
    return (home / "target" / "release" / "writers", library)


def debian(*packages: str, scratch: Path) -> Path:
    """Return a folder with these packages unpacked. Nothing is installed."""
    folder = scratch / packages[0]
    if not folder.exists():
        with TemporaryDirectory(dir=scratch) as unpacked:
            run("apt-get", "download", "-qq", *packages, folder=Path(unpacked))
            for package in Path(unpacked).glob("*.deb"):
                run("dpkg-deb", "--extract", package, unpacked, folder=scratch)
                package.unlink()
            Path(unpacked).rename(folder)
            Path(unpacked).mkdir()
    return folder


def c(scratch: Path) -> Command:
    root = debian("libavro-dev", "libavro23", "libjansson4", "libsnappy1v5", scratch=scratch)
    libraries = root / "usr" / "lib" / "x86_64-linux-gnu"
    program = scratch / "write-c"
    options = ("-I", root / "usr" / "include", "-L", libraries, "-Wl,--allow-shlib-undefined")
    run("gcc", "-O1", HERE / "c" / "write.c", "-o", program, *options, "-lavro", folder=scratch)
    return ("env", f"LD_LIBRARY_PATH={libraries}", program)


def cpp(library: str, scratch: Path) -> Command:
    root = debian("nlohmann-json3-dev", "rapidjson-dev", scratch=scratch)
    program = scratch / "write-cpp"
    if not program.exists():
        source = HERE / "cpp" / "write.cpp"
        run("g++", "-std=c++17", "-O1", source, "-o", program, "-I", root / "usr" / "include", folder=scratch)
    return (program, library)


def ruby(library: str, scratch: Path) -> Command:
    root = debian("ruby3.1", "libruby3.1", scratch=scratch)
    places = (root / "usr/lib/ruby/3.1.0", root / "usr/lib/x86_64-linux-gnu/ruby/3.1.0")
    paths = (f"RUBYLIB={':'.join(map(str, places))}", f"LD_LIBRARY_PATH={root / 'usr/lib/x86_64-linux-gnu'}")
    return ("env", *paths, root / "usr/bin/ruby3.1", "--disable-gems", HERE / "ruby" / "write.rb", library)


def php(library: str, scratch: Path) -> Command:
    root = debian("php8.2-cli", "libargon2-1", "libsodium23", "libxml2", scratch=scratch)
    paths = f"LD_LIBRARY_PATH={root / 'usr/lib/x86_64-linux-gnu'}"
    options = ("-n", "-d", "serialize_precision=-1")
    return ("env", paths, root / "usr/bin/php8.2", *options, HERE / "php" / "write.php", library)


OLD_JAVA: Final = "Java 17"
JAVA: Final = "Java 19 or newer"
JAVAS: Final = {OLD_JAVA: (17, 18), JAVA: (19, 99)}
"""From Java 19 on, doubles are written with the fewest digits."""
AVRO_JAVA: Final = ROOT / "tests" / "java" / "AvroJudge.java"
JSON_JAVA: Final = HERE / "java" / "WriteJson.java"
WRITERS: Final[dict[str, Writer]] = {
    "fastavro": Writer("avro", partial(python, "fastavro")),
    "avro": Writer("avro", partial(python, "avro")),
    "avro-java": Writer("avro", partial(java, AVRO_JAVA, "avro", JAVA), (JAVA,)),
    "avsc": Writer("avro", partial(javascript, "avsc"), ("node", "npm")),
    "hamba": Writer("avro", partial(go, "hamba"), ("go",)),
    "goavro": Writer("avro", partial(go, "goavro"), ("go",)),
    "apache-avro": Writer("avro", partial(rust, "apache-avro"), ("cargo",)),
    **{
        name: Writer("json", partial(python, name))
        for name in ("json", "json-compact", "json-sorted", "json-indented", "orjson", "msgspec")
    },
    **{
        name: Writer("json", partial(java, JSON_JAVA, name, JAVA), (JAVA,))
        for name in ("jackson", "jackson-indented", "gson")
    },
    "jackson-java17": Writer("json", partial(java, JSON_JAVA, "jackson", OLD_JAVA), (OLD_JAVA,)),
    **{
        name: Writer("json", partial(javascript, name), ("node", "npm")) for name in ("stringify", "stringify-indented")
    },
    **{name: Writer("json", partial(go, name), ("go",)) for name in ("json-structs", "json-maps", "json-encoder")},
    **{name: Writer("json", partial(rust, name), ("cargo",)) for name in ("serde_json", "serde_json-indented")},
    "avro-c": Writer("avro", c, ("gcc", "apt-get")),
    **{
        name: Writer("json", partial(cpp, name), ("g++", "apt-get"))
        for name in ("nlohmann", "nlohmann-sorted", "rapidjson")
    },
    **{name: Writer("json", partial(ruby, name), ("apt-get",)) for name in ("ruby", "ruby-indented")},
    **{name: Writer("json", partial(php, name), ("apt-get",)) for name in ("php", "php-point", "php-plain")},
    **{name: Writer("json", partial(python, name)) for name in ("system-text-json", "newtonsoft")},
}
CASES: Final = {"avro": avro_cases, "json": json_cases}


def answers(command: Command, cases: list[Case], scratch: Path) -> Written:
    """Run a program on the cases, framed as tests/java/AvroJudge.java says."""
    given = [struct.pack(">i", len(cases))]
    for case in cases:
        parts = [struct.pack(">i", len(part)) + part for part in (case.schema.encode(), *case.values)]
        given += [parts[0], struct.pack(">i", len(case.values)), *parts[1:]]
    output = run(*command, folder=scratch, given=b"".join(given))
    at = 0
    written: Written = []
    for case in cases:
        written.append([])
        for _ in case.values:
            (size,) = struct.unpack_from(">i", output, at)
            written[-1].append(None if size < 0 else output[at + 4 : at + 4 + size])
            at += 4 + max(0, size)
    assert at == len(output)
    return written


def is_same(name: str, cases: list[Case], before: Written, now: Written) -> bool:
    """Whether two runs wrote the same. Avro libraries may write a map's entries in any order."""
    if name != "avro":
        return before == now
    schemas = [fastavro.parse_schema(json.loads(case.schema)) for case in cases]
    return all(
        [_content(schema, value) for value in old] == [_content(schema, value) for value in new]
        for schema, old, new in zip(schemas, before, now, strict=True)
    )


def _content(schema: Any, value: bytes | None) -> str:
    datum = None if value is None else fastavro.schemaless_reader(io.BytesIO(value), schema, None)
    return json.dumps(datum, sort_keys=True, default=repr)


def is_there(tool: str) -> bool:
    return (java_of(*JAVAS[tool]) if tool in JAVAS else shutil.which(tool)) is not None


def main(scratch: Path, *, record: bool) -> None:
    """Run every writer that can be built here."""
    cases = {name: make() if record else read_cases(name) for name, make in CASES.items()}
    for name, writer in WRITERS.items():
        missing = [tool for tool in writer.tools if not is_there(tool)]
        if missing:
            print(f"{name}: passed over, there is no {' and no '.join(missing)} here")  # noqa: T201 - a command
            continue
        written = answers(writer.build(scratch), cases[writer.format], scratch)
        share = raw_share(writer.format, cases[writer.format], written)
        print(f"{name}: {share}")  # noqa: T201
        if record:
            keep(writer.format, cases[writer.format], {name: written})
        elif not is_same(writer.format, cases[writer.format], written_by(writer.format, name), written):
            raise SystemExit(f"{name} now writes other values than tests/vectors/writers has: make interop RECORD=1")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), record="--record" in sys.argv)
