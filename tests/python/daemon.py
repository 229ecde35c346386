"""A real leatd with one emulated module, on a private folder, for the tests of the Python package."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from pathlib import Path

CONFIG = """
[daemon]
socket = "{socket}"
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 60000
  [[application.module]]
  name = "sum"
  executor = "emulated"
  latency_ms = {latency}
"""


# The demo's detector with its outputs as they are, for frames and for tensors.
TENSORS_CONFIG = """
[daemon]
socket = "{socket}"
[[partition]]
name = "p"
kind = "cpu"
cores = "0"
[[application]]
name = "pictures"
slo_ms = 60000
  [[application.module]]
  name = "detect"
  model = "{model}"
  preprocess = "letterbox mean=0.5 std=0.5"
  postprocess = "tensors"
  batch = 1
[[application]]
name = "tensors"
slo_ms = 60000
  [[application.module]]
  name = "detect"
  model = "{model}"
  preprocess = "tensors"
  postprocess = "tensors"
  batch = 1
"""


class Daemon:
    """Runs until stop() or the end of `with`; `latency` is the module's time in ms for a batch of 1, 2, 4 ..."""

    def __init__(self, latency: str = "[0]", text: str = CONFIG, model: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="leat-python-")
        self.socket = str(Path(self._folder.name) / "leat.sock")
        self._config = Path(self._folder.name) / "leatd.toml"
        self._config.write_text(text.format(socket=self.socket, latency=latency, model=model))
        self._log = open(Path(self._folder.name) / "log", "w+")
        self.start()

    def start(self) -> None:
        """Again, after it ended."""
        ready, tell = os.pipe()
        self.process = subprocess.Popen(
            [os.environ["LEATD"], "--ready-fd", str(tell), str(self._config)], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, pass_fds=[tell]
        )
        os.close(tell)
        try:
            if not select.select([ready], [], [], 60)[0] or not os.read(ready, 1):
                self.process.kill()
                raise RuntimeError("leatd did not start: " + self.log())
        finally:
            os.close(ready)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.kill()
        self._log.close()
        self._folder.cleanup()
