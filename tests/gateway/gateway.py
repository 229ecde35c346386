"""A leatd with its gateway on a private folder, and HTTP by hand, for the tests of `leat gateway`."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE = 60.0  # seconds; the machine may have other work

EMULATED = """
[daemon]
socket = "{socket}"
[[partition]]
name = "p"
kind = "emulated"
count = {partitions}
[[application]]
name = "echo"
slo_ms = {slo_ms}
  [[application.module]]
  name = "sum"
  executor = "emulated"
  latency_ms = {latency}
"""

TENSORS = """
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

CPU = """
[[partition]]
name = "cpu"
kind = "cpu"
cores = "0"
"""

PICTURES = """
[[application]]
name = "pictures"
slo_ms = 60000
  [[application.module]]
  name = "detect"
  model = "{model}"
  preprocess = "letterbox mean=0.5 std=0.5"
  postprocess = "boxes stride=8 score=0.2 iou=0.6"
  labels = ["object"]
  batch = 1
"""


def started(words: list[str], log, what: str) -> tuple[subprocess.Popen, str]:
    """The process, and the line it says when it serves; "{}" among its words stands for where it is to say so."""
    ready, tell = os.pipe()
    process = subprocess.Popen(
        [word.replace("{}", str(tell)) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tell]
    )
    os.close(tell)
    try:
        if not select.select([ready], [], [], PATIENCE)[0]:
            process.kill()
            raise RuntimeError(what + " did not start")
        return process, os.read(ready, 100).decode()
    finally:
        os.close(ready)


def until(holds, patience: float = PATIENCE):
    """The first true value of holds()."""
    end = time.monotonic() + patience
    while True:
        value = holds()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.01)


class Answer:
    def __init__(self, status: int, fields: dict[str, str], body: bytes) -> None:
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<{self.status} {self.fields} {self.body[:300]!r}>"


class Leatd:
    def __init__(self, folder: str, text: str, name: str = "leat", **values: object) -> None:
        self.socket = f"{folder}/{name}.sock"
        self.config = Path(f"{folder}/{name}.toml")
        values = {"partitions": 2, "slo_ms": 60000, "latency": "[0]"} | values
        self.config.write_text(text.format(socket=self.socket, **values))
        self.log_file = open(f"{folder}/{name}.log", "w+")
        self.start()

    def start(self) -> None:
        self.process, said = started([os.environ["LEATD"], "--ready-fd={}", str(self.config)], self.log_file, "leatd")
        if not said:
            raise RuntimeError("leatd did not start: " + self.log())

    def log(self) -> str:
        self.log_file.seek(0)
        return self.log_file.read()

    def end(self, how: int = signal.SIGKILL) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE)


class Gateway:
    def __init__(self, leatd_socket: str, *options: str, listen: str = "127.0.0.1:0", wait: bool = True) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="leat-gateway-")
        self.log_file = open(f"{self.folder.name}/log", "w+")
        self.host = listen.rpartition(":")[0]
        words = [os.environ["LEAT"], "gateway", "--ready-fd={}", "--socket", leatd_socket, "--listen", listen, "--node", "here", *options]
        self.process, said = started(words, self.log_file, "the gateway")
        if not said:
            raise RuntimeError("the gateway did not start: " + self.log())
        self.port, self.grpc_port = (*map(int, said.split()[1:]), 0)[:2]
        self.address = f"{self.host}:{self.port}"
        if wait and not until(lambda: self.get("/v2/health/ready").status == 200):
            raise RuntimeError(f"not ready: {self.get('/v2/health/ready')} {self.log()}")

    def log(self) -> str:
        self.log_file.seek(0)
        return self.log_file.read()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def raw(self) -> socket.socket:
        out = socket.create_connection((self.host, self.port), PATIENCE)
        out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return out

    def ask(self, method: str, path: str, body: bytes | None = None, fields: dict[str, str] | None = None, connection=None) -> Answer:
        c = connection or self.connect()
        try:
            c.request(method, path, body=body, headers=fields or {})
            r = c.getresponse()
            return Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        finally:
            if connection is None:
                c.close()

    def get(self, path: str, **more) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: bytes = b"", fields: dict[str, str] | None = None, **more) -> Answer:
        return self.ask("POST", path, body, fields, **more)

    def infer(self, model: str, head: dict, binary: bytes = b"", fields: dict[str, str] | None = None, **more) -> Answer:
        text = json.dumps(head).encode()
        sent = dict(fields or {})
        if binary:
            sent["Inference-Header-Content-Length"] = str(len(text))
        return self.post(f"/v2/models/{model}/infer", text + binary, sent, **more)

    def picture(self, width: int, height: int, pixels: bytes, fields: dict[str, str] | None = None, **more) -> Answer:
        return self.infer("echo", picture_head(width, height, len(pixels)), pixels, fields, **more)

    def metrics(self) -> dict[str, float]:
        lines = (l.rpartition(" ") for l in self.get("/metrics").body.decode().splitlines() if l and l[0] != "#")
        return {name: float(value) for name, _, value in lines}

    def end(self, how: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self.log_file.close()
        self.folder.cleanup()
        return status


def picture_head(width: int, height: int, size: int, items: int = 1) -> dict:
    tensor = {"name": "image", "shape": [items, height, width, 3], "datatype": "UINT8", "parameters": {"binary_data_size": size}}
    return {"inputs": [tensor], "parameters": {"binary_data_output": False}}


def checksum(data: bytes) -> int:
    """What the emulated executor answers for these bytes (engine/exec/checksum.h)."""
    mask, prime = (1 << 64) - 1, 0x9E3779B185EBCA87
    lanes = [len(data), mask, prime, prime ^ mask]
    for at in range(0, len(data), 32):
        block = data[at : at + 32].ljust(32, b"\0")
        words = [int.from_bytes(block[i : i + 8], "little") for i in range(0, 32, 8)]
        lanes = [(lane ^ word) * prime & mask for lane, word in zip(lanes, words)]
        lanes = [lane ^ lane >> 29 for lane in lanes]
    out = len(data)
    for lane in lanes:
        out = (out ^ lane) * prime & mask
        out ^= out >> 32
    return out


def answer_of(raw: socket.socket, left: bytes = b"") -> tuple[Answer | None, bytes]:
    """The next answer on a connection, and what came behind it. None: it was closed before one was whole."""
    while b"\r\n\r\n" not in left:
        got = raw.recv(65536)
        if not got:
            return None, left
        left += got
    head, _, left = left.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    size = int(fields.get("content-length", 0))
    while len(left) < size:
        got = raw.recv(65536)
        if not got:
            return None, left
        left += got
    return Answer(int(lines[0].split()[1]), fields, left[:size]), left[size:]


class WithNode(unittest.TestCase):
    text, values, options = EMULATED, {}, ()

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="leat-node-")
        cls.leatd = Leatd(cls.folder.name, cls.text, **cls.values)
        cls.gateway = Gateway(cls.leatd.socket, *cls.options)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.gateway.end()
        cls.leatd.end()
        cls.folder.cleanup()


def main() -> None:
    """As unittest's, but for the status where nothing failed and something was skipped: ctest shows that."""
    result = unittest.main(module="__main__", verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
