"""The soak's clients: each a process of its own that comes, sends, leaves or is killed. Run as clients.py ROLE SEED ADDRESS..."""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "shm/python"), str(ROOT / "tests/gateway")]


def library(chance: random.Random, where: str) -> None:
    """Streams of every format that open and close; some answers are never taken."""
    import leat

    sizes = [(64, 48), (320, 240), (640, 360)]
    while True:
        try:
            with leat.connect(where, name="soak") as client:
                for _ in range(chance.randrange(1, 6)):
                    width, height = chance.choice(sizes)
                    kind = chance.choice(["rgb24", "bgr24", "nv12", "i420", "gray8"])
                    overload = chance.choice(["fifo", "latest", "never_drop"])
                    with client.open_stream("echo", kind, width, height, depth=chance.randrange(1, 8), overload=overload) as stream:
                        for _ in range(chance.randrange(5, 60)):
                            try:
                                stream.acquire().submit()
                            except leat.RingFull:
                                pass
                            if chance.random() < 0.8:
                                try:
                                    client.next_answer(0.2).release()
                                except leat.TimedOut:
                                    pass
                            time.sleep(0.01)
        except leat.Error:
            time.sleep(0.1)


def http(chance: random.Random, port: str) -> None:
    """Requests on connections that are kept, ended early, or left in the middle of a body."""
    from gateway import picture_head

    while True:
        width, height = chance.choice([(64, 48), (160, 208)])
        size = width * height * 3
        head = json.dumps(picture_head(width, height, size)).encode()
        fields = f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(head) + size}\r\n\r\n"
        request = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: soak\r\n" + fields.encode() + head + bytes(size)
        try:
            with socket.create_connection(("127.0.0.1", int(port)), 5) as raw:
                raw.settimeout(5)
                for _ in range(chance.randrange(1, 30)):
                    if chance.random() < 0.05:
                        raw.sendall(request[: chance.randrange(len(request))])
                        break
                    raw.sendall(request)
                    text = b""
                    while b"\r\n\r\n" not in text and (block := raw.recv(65536)):
                        text += block
                    if not text or b"connection: close" in text.lower():
                        break
                    time.sleep(0.02)
        except OSError:
            time.sleep(0.05)


def detector(chance: random.Random, endpoint: str) -> None:
    """A detector of Frigate's, as far as the bridge sees."""
    import zmq

    context = zmq.Context()
    while True:
        with context.socket(zmq.REQ) as asks:
            asks.setsockopt(zmq.LINGER, 0)
            asks.setsockopt(zmq.RCVTIMEO, 1000)
            asks.connect(endpoint)
            try:
                asks.send_json({"model_request": True, "model_name": "yard.onnx"})
                asks.recv()
                for _ in range(chance.randrange(1, 100)):
                    asks.send_multipart([json.dumps({"shape": [1, 64, 64, 3], "dtype": "uint8", "model_type": "yologeneric"}).encode(), bytes(64 * 64 * 3)])
                    asks.recv_multipart()
                    time.sleep(0.05)
            except zmq.ZMQError:
                time.sleep(0.1)


def camera(chance: random.Random, port: str) -> None:
    """Raw video over TCP to whoever connects; it breaks off, stalls, and now and then is not there at all."""
    head, picture = b"YUV4MPEG2 W64 H32 F10:1 Ip A1:1 C420jpeg\n", b"FRAME\n" + bytes(64 * 32 * 3 // 2)

    def serve(peer: socket.socket) -> None:
        with peer:
            try:
                peer.sendall(head)
                for _ in range(chance.randrange(5, 200)):
                    peer.sendall(picture)
                    time.sleep(0.1)
                time.sleep(chance.choice([0, 0, 2]))
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", int(port))) as listener:
        while True:
            peer, _ = listener.accept()
            if chance.random() < 0.2:
                peer.close()
                continue
            threading.Thread(target=serve, args=(peer,), daemon=True).start()


def main() -> None:
    role, seed, *addresses = sys.argv[1:]
    os.nice(5)
    try:
        {"library": library, "http": http, "detector": detector, "camera": camera}[role](random.Random(int(seed)), *addresses)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
