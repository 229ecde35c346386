"""What HTTP costs: processes that each send 1.2 MB frames one after the other (as many bytes as 320x320 floats in three
planes), by the client library and through `leat gateway`, beside each other in turns. Prints throughput and median
latency of both, and their ratios. Needs numpy, LEAT, LEATD and LEAT_LIBRARY."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/gateway"), str(ROOT / "shm/python")]
from gateway import EMULATED, Gateway, Leatd, answer_of, picture_head  # noqa: E402

SIDE = 640
BYTES = SIDE * SIDE * 3


def by_library(where: str, seconds: float, out) -> None:
    import numpy as np

    import leat

    pixels = np.full((SIDE, SIDE, 3), 7, np.uint8)
    times = []
    with leat.connect(where) as client, client.open_stream("echo", "rgb24", SIDE, SIDE, depth=2, overload="fifo") as stream:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            with stream.acquire() as frame:
                frame.array[:] = pixels
                frame.submit()
            with client.next_answer(10) as answer:
                assert answer.outcome == "completed", answer
            times.append(time.perf_counter() - began)
    out.put(times)


def by_http(where: tuple[str, int], seconds: float, out) -> None:
    head = json.dumps(picture_head(SIDE, SIDE, BYTES)).encode()
    fields = f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(head) + BYTES}\r\n\r\n"
    request = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n" + fields.encode() + head + bytes([7]) * BYTES
    times = []
    with socket.create_connection(where) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            raw.sendall(request)
            answer, _ = answer_of(raw)
            assert answer is not None and answer.status == 200, answer
            times.append(time.perf_counter() - began)
    out.put(times)


def measured(how, where, processes: int, seconds: float) -> tuple[float, float]:
    """Frames a second, and the median in ms."""
    out = multiprocessing.Queue()
    running = [multiprocessing.Process(target=how, args=(where, seconds, out)) for _ in range(processes)]
    for p in running:
        p.start()
    times = [out.get(timeout=60) for _ in running]
    for p in running:
        p.join()
    return sum(map(len, times)) / seconds, 1000 * statistics.median(t for each in times for t in each)


def attack(where: tuple[str, int], ready, stop) -> None:
    """Connections without end, heads and bodies that never become whole, and bytes that are no HTTP."""
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: 20\r\nContent-Length: 100000\r\n\r\n"
    open_now: list[socket.socket] = []
    begun = 0
    while not stop.is_set():
        try:
            s = socket.create_connection(where, 5)
            begun += 1
            s.sendall((b"", head + bytes(50), b"GET / HTTP/1.1\r\nHo", b"\x16\x03\x01\r\n\r\n", head[:60])[begun % 5])
            open_now.append(s)
        except OSError:
            pass
        if len(open_now) > 800:
            open_now.pop(0).close()
        if begun == 1000:
            ready.set()
        time.sleep(0.001)


def attacked(gateway: Gateway, seconds: float, rounds: int) -> None:
    """The 99th percentile of an honest client, alone and beside the attack, in turns."""

    def p99() -> float:
        out = multiprocessing.Queue()
        honest = multiprocessing.Process(target=by_http, args=((gateway.host, gateway.port), seconds, out))
        honest.start()
        times = sorted(out.get(timeout=60))
        honest.join()
        return 1000 * times[int(0.99 * (len(times) - 1))]

    for _ in range(rounds):
        alone = p99()
        ready, stop = multiprocessing.Event(), multiprocessing.Event()
        attacker = multiprocessing.Process(target=attack, args=((gateway.host, gateway.port), ready, stop))
        attacker.start()
        ready.wait(60)
        beside = p99()
        stop.set()
        attacker.join()
        print(f"honest p99 alone {alone:.2f} ms, attacked {beside:.2f} ms", flush=True)
    print({k: v for k, v in gateway.metrics().items() if "connections" in k or "bad_heads" in k or "timed_out" in k})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model-ms", type=float, default=10, help="what a frame takes on one of two emulated partitions")
    parser.add_argument("--processes", default="1,4")
    parser.add_argument("--attacked", action="store_true", help="an honest client beside a hostile one, in place of the rest")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        leatd = Leatd(folder, EMULATED, latency=f"[{args.model_ms}]", partitions=2)
        gateway = Gateway(leatd.socket)
        try:
            for processes in () if args.attacked else map(int, args.processes.split(",")):
                rates, overheads = [], []
                for _ in range(args.rounds):
                    rate, p50 = measured(by_library, leatd.socket, processes, args.seconds)
                    other_rate, other_p50 = measured(by_http, (gateway.host, gateway.port), processes, args.seconds)
                    rates.append(other_rate / rate)
                    overheads.append(other_p50 - p50)
                    print(f"{processes} processes: library {rate:.0f}/s {p50:.2f} ms, HTTP {other_rate:.0f}/s {other_p50:.2f} ms", flush=True)
                print(
                    f"{processes} processes: throughput ratio {statistics.median(rates):.3f} ({min(rates):.3f}..{max(rates):.3f}), "
                    f"median overhead {statistics.median(overheads):.2f} ms ({min(overheads):.2f}..{max(overheads):.2f})",
                    flush=True,
                )
            if args.attacked:
                attacked(gateway, args.seconds, args.rounds)
        finally:
            gateway.end()
            leatd.end()


if __name__ == "__main__":
    main()
