"""Whether workers of a new session have a module imported. A program, as engines join an active session."""

from __future__ import annotations

import json
import sys

from pyspark import cloudpickle

from archiver.engine.spark import SparkEngine


def is_imported(name: str) -> bool:
    return name in sys.modules


if __name__ == "__main__":
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with SparkEngine.start({"master": "local[1]"}, preloaded=("colorsys",)) as engine:
        found = {outcome.index: outcome.result for outcome in engine.run_tasks(["colorsys", "turtle"], is_imported)}
    sys.stdout.write(json.dumps(found))
