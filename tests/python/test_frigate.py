"""Frigate's own client against `leat bridge zmq`: the file frigate/detectors/plugins/zmq_ipc.py, as it is, out of a checkout that
LEAT_FRIGATE names (tried with commit e3fa7018). Skipped where there is none, or no python3-zmq."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from pathlib import Path

import numpy as np
from daemon import Daemon

CONFIG = """
[daemon]
socket = "{socket}"
[[partition]]
name = "p"
kind = "cpu"
cores = "0"
[[application]]
name = "yard"
slo_ms = 60000
  [[application.module]]
  name = "detect"
  model = "{model}"
  preprocess = "letterbox mean=0.5 std=0.5"
  postprocess = "boxes stride=8 score=0.2 iou=0.6"
  labels = ["object"]
  batch = 2
"""


def module(name: str, **members: object) -> None:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)


def plugin(checkout: str) -> types.ModuleType:
    """The file, with stand-ins for what it imports of pydantic and of Frigate."""
    module("pydantic", ConfigDict=lambda **_: None, Field=lambda **_: None)
    module("frigate")
    module("frigate.detectors")
    api = type("DetectionApi", (), {"__init__": lambda self, config: setattr(self, "detector_config", config)})
    module("frigate.detectors.detection_api", DetectionApi=api)
    module("frigate.detectors.detector_config", BaseDetectorConfig=object)
    path = Path(checkout) / "frigate/detectors/plugins/zmq_ipc.py"
    spec = importlib.util.spec_from_file_location("zmq_ipc", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Frigate(unittest.TestCase):
    def setUp(self) -> None:
        checkout = os.environ.get("LEAT_FRIGATE", "")
        if not checkout:
            self.skipTest("LEAT_FRIGATE names no checkout of Frigate")
        try:
            import zmq  # noqa: F401
        except ImportError:
            self.skipTest("there is no python3-zmq")
        self.plugin = plugin(checkout)

    def detector(self, endpoint: str):
        model_type = types.SimpleNamespace(name="yologeneric")
        model = types.SimpleNamespace(path="/config/model_cache/yard.onnx", model_type=model_type)
        return self.plugin.ZmqIpcDetector(types.SimpleNamespace(endpoint=endpoint, request_timeout_ms=20000, linger_ms=0, model=model))

    def test_one_and_four_detectors(self) -> None:
        picture = np.full((192, 192, 3), 90, np.uint8)
        picture[60:110, 70:130] = (220, 30, 30)  # a red square
        planes = (picture.transpose(2, 0, 1)[np.newaxis] / 255).astype(np.float32)
        with tempfile.TemporaryDirectory(prefix="leat-frigate-") as folder, Daemon(text=CONFIG, model=os.environ["LEAT_DETECT"]) as daemon:
            endpoint = f"ipc://{folder}/detector"
            bridge = subprocess.Popen(
                [os.environ["LEAT"], "bridge", "zmq", "--endpoint", endpoint, "--socket", daemon.socket, "--answer-ms", "19000", "--every", "0"],
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                first = self.detector(endpoint)
                expected = first.detect_raw(picture[np.newaxis])
                self.assertEqual(expected.shape, (20, 6))
                self.assertGreater(expected[0, 1], 0.4)
                np.testing.assert_allclose(expected[0, 2:], [60 / 192, 70 / 192, 110 / 192, 130 / 192], atol=0.06)
                wrong = []

                def ask(detector) -> None:
                    for _ in range(5):
                        if not np.array_equal(detector.detect_raw(planes), expected):
                            wrong.append(detector)

                threads = [threading.Thread(target=ask, args=(d,)) for d in [first, *(self.detector(endpoint) for _ in range(3))]]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(wrong, [])
            finally:
                bridge.terminate()
                counted = bridge.communicate(timeout=30)[0]
            self.assertIn("21 questions, 21 answered", counted)
            self.assertIn(" 0 zeros", counted)


if __name__ == "__main__":
    unittest.main()
