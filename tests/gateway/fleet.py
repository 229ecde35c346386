"""Three hosts on one: leatds with emulated partitions of speeds 4:2:1, a gateway each at 127.0.0.2 to 4, HAProxy in front,
and clients that send as cameras do, whatever becomes of their requests."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from gateway import EMULATED, PATIENCE, Gateway, Leatd, picture_head, until

SLO_MS = 200
TIMES_MS = (10, 20, 40)  # of one request on each node, one at a time
CAPACITY = sum(1000 / ms for ms in TIMES_MS)


def haproxy_program() -> str | None:
    return shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")


def free_port(host: str) -> int:
    with socket.create_server((host, 0)) as s:
        return s.getsockname()[1]


class Node:
    def __init__(self, folder: str, index: int) -> None:
        self.folder, self.index, self.host = folder, index, f"127.0.0.{index + 2}"
        self.port, self.agent = free_port(self.host), free_port(self.host)
        self.leatd = Leatd(folder, EMULATED, f"leatd{index}", partitions=1, slo_ms=SLO_MS, latency=f"[{TIMES_MS[index]}]")
        self.gateway = self.new_gateway()

    def new_gateway(self) -> Gateway:
        options = ("--agent", f"{self.host}:{self.agent}", "--depth", "24", "--drain-ms", "5000")
        return Gateway(self.leatd.socket, *options, listen=f"{self.host}:{self.port}")

    @property
    def name(self) -> str:
        return f"n{self.index}={self.host}:{self.port}/{self.agent}"

    def restart(self) -> None:
        """As an upgrade does it: the gateway drains, then leatd, then both anew."""
        self.gateway.end(signal.SIGTERM)
        self.leatd.end(signal.SIGTERM)
        self.leatd.start()
        self.gateway = self.new_gateway()

    def signal(self, number: int) -> None:
        for process in (self.gateway.process, self.leatd.process):
            process.send_signal(number)

    def end(self) -> None:
        for process in (self.gateway.process, self.leatd.process):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        self.gateway.end(signal.SIGKILL)
        self.leatd.end()


class Liar:
    """An agent port that always says that the whole node is free."""

    def __init__(self, host: str) -> None:
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                peer.sendall(b"ready up 100%\n")

    def end(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Fleet:
    def __init__(self, balance: str = "leastconn", agents: bool = True, nodes: int = 3, lying: int | None = None) -> None:
        """lying: the node of that number is said to be as fast as the fastest, and all of it free."""
        self._folder = tempfile.TemporaryDirectory(prefix="leat-fleet-")
        self.folder = self._folder.name
        self.nodes = [Node(self.folder, i) for i in range(nodes)]
        self.port = free_port("127.0.0.1")
        self.stats = f"{self.folder}/stats.sock"
        names = ",".join(n.name if agents else n.name.rpartition("/")[0] for n in self.nodes)
        words = [os.environ["LEAT"], "gateway", "--haproxy", names, "--bind", f"127.0.0.1:{self.port}"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
        text = said.stdout.replace("/run/haproxy-leat.sock", self.stats).replace("balance leastconn", "balance " + balance)
        # On a busy machine HAProxy itself gets its turn too late for the time that tells a lost host, and closes without an answer.
        text = text.replace("timeout connect 250ms", "timeout connect 5s")
        self.liar = None
        if lying is not None:
            node = self.nodes[lying]
            self.liar = Liar(node.host)
            text = re.sub(rf"(server n{lying} \S+ weight) \d+(.* agent-port) {node.agent}\b", rf"\1 100\2 {self.liar.port}", text)
        with open(f"{self.folder}/haproxy.cfg", "w") as file:
            file.write(text)
        self.log = open(f"{self.folder}/haproxy.log", "w")
        self.haproxy = subprocess.Popen([haproxy_program(), "-db", "-f", file.name], stdout=self.log, stderr=self.log)
        if not until(lambda: self.up() == nodes):
            raise RuntimeError("not all nodes came up: " + open(self.log.name).read())

    def ask(self, line: str) -> str:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(self.stats)
            s.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()

    def up(self) -> int:
        try:
            lines = [line.split(",") for line in self.ask("show stat").splitlines()]
        except OSError:
            return 0
        return sum(1 for f in lines if len(f) > 17 and f[0] == "nodes" and f[1].startswith("n") and f[17].startswith("UP"))

    def ledger(self) -> dict:
        hosts = ",".join(f"{n.host}:{n.port}" for n in self.nodes)
        words = [os.environ["LEAT"], "gateway", "--ledger", hosts, "--haproxy-stats", self.stats, "--json"]
        return json.loads(subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE).stdout)

    def end(self) -> None:
        self.haproxy.kill()
        self.haproxy.wait()
        for node in self.nodes:
            node.end()
        if self.liar:
            self.liar.end()
        self.log.close()
        self._folder.cleanup()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()


class Load:
    """Open loop: a request every 1/rate seconds, on a connection that is free or a new one."""

    def __init__(self, port: int, width: int = 160, height: int = 208) -> None:  # 100 kB
        self.port = port
        pixels = bytes(width * height * 3)
        head = json.dumps(picture_head(width, height, len(pixels))).encode()
        fields = f"X-Leat-Budget-Us: {SLO_MS * 1000}\r\nInference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(head) + len(pixels)}\r\n"
        self.request = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: leat\r\n" + fields.encode() + b"\r\n" + head + pixels
        self.free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.sent, self.answers = 0, []  # (sent at, seconds, status); status 0: broken

    async def one(self) -> None:
        began = time.monotonic()
        status = 0
        pair = None
        try:
            pair = self.free.pop() if self.free else await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = pair
            writer.write(self.request)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            lower = head.lower()
            size = int(lower.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            await reader.readexactly(size)
            if b"connection: close" not in lower:
                self.free.append(pair)
                pair = None
        except (OSError, asyncio.IncompleteReadError, ValueError):
            status = 0
        finally:
            if pair is not None:
                pair[1].close()
        self.answers.append((began, time.monotonic() - began, status))

    async def run(self, rate: float, seconds: float, events: list[tuple[float, object]] = []) -> None:
        """events: (after so many seconds, what to call, on a thread)."""
        start = time.monotonic()
        loop = asyncio.get_running_loop()
        running: set[asyncio.Task] = set()
        waiting = sorted(events, key=lambda e: e[0])
        for i in range(int(rate * seconds)):
            due = start + i / rate
            while waiting and due - start >= waiting[0][0]:
                running.add(asyncio.ensure_future(loop.run_in_executor(None, waiting.pop(0)[1])))
            if (left := due - time.monotonic()) > 0:
                await asyncio.sleep(left)
            self.sent += 1
            task = asyncio.ensure_future(self.one())
            running.add(task)
        done, late = await asyncio.wait(running, timeout=PATIENCE)
        for task in done:
            task.result()
        for task in late:
            task.cancel()
        for _, writer in self.free:
            writer.close()

    def figures(self, since: float = 0.0) -> dict:
        """Of what was sent from `since` on (a time.monotonic())."""
        chosen = [a for a in self.answers if a[0] >= since]
        good = sorted(s for _, s, status in chosen if status == 200 and s <= SLO_MS / 1000)
        count = lambda status: sum(1 for a in chosen if a[2] == status)
        return {
            "sent": self.sent,
            "answered": len(self.answers),
            "good": len(good),
            "late": count(200) - len(good),
            "refused": {s: count(s) for s in sorted({a[2] for a in chosen} - {200, 0})},
            "broken": count(0),
            "p99_ms": round(1000 * good[int(0.99 * (len(good) - 1))], 1) if good else None,
        }


def loaded(port: int, rate: float, seconds: float, events: list[tuple[float, object]] = []) -> Load:
    load = Load(port)
    asyncio.run(load.run(rate, seconds, events))
    return load
