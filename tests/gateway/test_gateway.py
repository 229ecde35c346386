"""`leat gateway` against a real leatd: every call of KServe's contract, budgets and refusals, hostile HTTP, its end."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import zlib

from gateway import CPU, EMULATED, PATIENCE, PICTURES, TENSORS, Answer, Gateway, Leatd, WithNode, answer_of, checksum, main, picture_head, until

LEAT = os.environ["LEAT"]


def made_png() -> tuple[bytes, tuple[int, int]]:
    """A red square on grey."""
    width, height = 160, 120
    row = lambda y: b"\0" + b"".join(b"\xd0\x10\x10" if 50 <= x < 90 and 40 <= y < 80 else b"\x70\x70\x70" for x in range(width))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(b"".join(row(y) for y in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""), (width, height)


class Calls(WithNode):
    """What tritonclient and Ultralytics' wrapper call, and what they are told."""

    def test_health_and_server(self) -> None:
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready", "/v2/models/echo/versions/1/ready"):
            self.assertEqual(self.gateway.get(path).status, 200, path)
        said = self.gateway.get("/v2").json()
        self.assertEqual(said["name"], "leat")
        self.assertIn("binary_tensor_data", said["extensions"])
        self.assertEqual(self.gateway.get("/v2/health/live").body, b"")

    def test_metadata_config_and_index(self) -> None:
        said = self.gateway.get("/v2/models/echo").json()
        self.assertEqual((said["name"], said["versions"]), ("echo", ["1"]))
        self.assertEqual(said["inputs"], [{"name": "image", "datatype": "UINT8", "shape": [-1, -1, -1, 3]}])
        config = self.gateway.get("/v2/models/echo/config").json()
        self.assertEqual((config["max_batch_size"], config["input"][0]["data_type"], config["input"][0]["dims"]), (64, "TYPE_UINT8", [-1, -1, 3]))
        self.assertIn("checksum", [o["name"] for o in config["output"]])
        index = self.gateway.post("/v2/repository/index").json()
        self.assertEqual([(m["name"], m["state"]) for m in index], [("echo", "READY")])

    def test_infer_binary_and_json(self) -> None:
        pixels = bytes(range(192))  # whole lines of a slot, which is what is summed
        want = checksum(pixels)
        answer = self.gateway.picture(8, 8, pixels)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()["outputs"], [{"name": "checksum", "datatype": "UINT64", "shape": [1, 1], "data": [want]}])
        self.assertEqual((answer.fields["x-leat-node"], answer.fields["x-leat-reason"]), ("here", "none"))
        for name in ("x-leat-queue-us", "x-leat-compute-us"):
            self.assertGreaterEqual(int(answer.fields[name]), 0)
        rows = [[list(pixels[(y * 8 + x) * 3 :][:3]) for x in range(8)] for y in range(8)]
        head = {"id": "seven", "inputs": [{"name": "image", "shape": [8, 8, 3], "datatype": "UINT8", "data": rows}]}
        answer = self.gateway.infer("echo", head | {"outputs": [{"name": "checksum", "parameters": {"binary_data": True}}]})
        self.assertEqual(answer.status, 200, answer)
        size = int(answer.fields["inference-header-content-length"])
        self.assertEqual(json.loads(answer.body[:size])["id"], "seven")
        self.assertEqual(int.from_bytes(answer.body[size:], "little"), want)

    def test_a_batch_is_answered_item_by_item(self) -> None:
        items = [bytes((i * 7 + j) % 251 for j in range(192)) for i in range(64)]
        want = [checksum(pixels) for pixels in items]
        for count in (2, 13, 64):  # more than a stream has slots, too
            for named in ({}, {"X-Leat-Stream": "mine"}):
                answer = self.gateway.infer("echo", picture_head(8, 8, 192 * count, count), b"".join(items[:count]), named)
                self.assertEqual(answer.status, 200, answer)
                (output,) = answer.json()["outputs"]
                self.assertEqual(output, {"name": "checksum", "datatype": "UINT64", "shape": [count, 1], "data": want[:count]})
                self.assertEqual(answer.fields["x-leat-reason"], "none")
        rows = [[[list(pixels[(y * 8 + x) * 3 :][:3]) for x in range(8)] for y in range(8)] for pixels in items[:3]]
        head = {"inputs": [{"name": "image", "shape": [3, 8, 8, 3], "datatype": "UINT8", "data": rows}]}
        answer = self.gateway.infer("echo", head | {"outputs": [{"name": "checksum", "parameters": {"binary_data": True}}]})
        size = int(answer.fields["inference-header-content-length"])
        self.assertEqual(answer.body[size:], b"".join(w.to_bytes(8, "little") for w in want[:3]))

    def test_statistics(self) -> None:
        self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        stats = self.gateway.get("/v2/models/echo/stats").json()["model_stats"][0]
        self.assertLess(abs(stats["last_inference"] / 1000 - time.time()), 10 * PATIENCE)  # by the calendar
        self.assertGreater(stats["inference_stats"]["success"]["count"], 0)
        self.assertEqual(len(self.gateway.get("/v2/models/stats").json()["model_stats"]), 1)

    def test_what_is_wrong_is_said_in_one_line(self) -> None:
        def head(**more) -> dict:
            tensor = {"name": "image", "shape": [1, 4, 8, 3], "datatype": "UINT8", "parameters": {"binary_data_size": 96}}
            return {"inputs": [tensor | more]}

        cases = [
            (head(name="other"), bytes(96), "no input"),
            (head(datatype="FP32"), bytes(96), "UINT8"),
            (head(shape=[65, 4, 8, 3]), bytes(65 * 96), "1..64"),
            (head(shape=[0, 4, 8, 3]), b"", "1..64"),
            (head(shape=[2, 4, 8, 3]), bytes(96), "192 bytes"),
            (head(shape=[1, 4, 1 << 40, 3]), bytes(96), "UINT8 [1..64, 1..16384, 1..16384, 3]"),
            (head(shape=[1, 4, -8, 3]), bytes(96), "1..64"),
            (head(parameters={"binary_data_size": 95}), bytes(95), "96 bytes"),
            (head(), bytes(95), "ends before"),
            (head(), bytes(97), "no input"),
            (head(data=[1]), bytes(96), "twice"),
            (head() | {"outputs": [{"name": "nothing"}]}, bytes(96), "no output"),
            (head() | {"parameters": {"timeout": -1}}, bytes(96), "timeout"),
            (head() | {"parameters": {"sequence_id": 3}}, bytes(96), "sequences"),
            ({"inputs": []}, b"", "takes 1 input"),
            ({}, b"", "cannot be read"),
        ]
        for given, binary, word in cases:
            answer = self.gateway.infer("echo", given, binary)
            self.assertEqual(answer.status, 400, (given, answer))
            self.assertIn(word, answer.json()["error"], given)
            self.assertNotIn("\n", answer.json()["error"])
        for fields in ({"X-Leat-Budget-Us": "soon"}, {"X-Leat-Class": "royal"}, {"X-Leat-Stream": "a b"}):
            self.assertEqual(self.gateway.picture(8, 4, bytes(96), fields).status, 400, fields)

    def test_what_is_not_there(self) -> None:
        for method, path, status in [
            ("GET", "/v2/models/none", 404),
            ("GET", "/v2/models/echo/versions/9", 404),
            ("GET", "/v2/models/echo/secrets", 404),
            ("POST", "/v2/repository/models/echo/load", 501),
            ("POST", "/v2/systemsharedmemory/region/a/register", 501),
            ("GET", "/v2/systemsharedmemory/status", 200),
            ("POST", "/v2/cudasharedmemory/unregister", 200),
            ("POST", "/v2/cudasharedmemory/region/a/register", 501),
            ("DELETE", "/v2/models/echo", 405),
            ("GET", "/v2/models/echo/infer", 405),
            ("GET", "/v2/models/..%2f..", 400),
            ("GET", "/nothing", 404),
        ]:
            answer = self.gateway.ask(method, path, b"{}" if method == "POST" else None)
            self.assertEqual(answer.status, status, (path, answer))
            if status >= 400:
                self.assertIn("error", answer.json(), path)

    def test_one_connection_serves_one_request_after_the_other(self) -> None:
        connection = self.gateway.connect()
        for i in range(50):
            pixels = bytes([i]) * 192
            answer = self.gateway.picture(8, 8, pixels, connection=connection)
            self.assertEqual(answer.json()["outputs"][0]["data"], [checksum(pixels)])
        connection.close()

    def test_requests_that_come_at_once_are_answered_in_order(self) -> None:
        with self.gateway.raw() as raw:
            raw.sendall(b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\nGET /v2/models/echo HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
            left = b""
            for i in range(40):
                answer, left = answer_of(raw, left)
                self.assertEqual(answer.json()["name"], "echo" if i % 2 else "leat")

    def test_metrics(self) -> None:
        self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        text = until(lambda: (t := self.gateway.get("/metrics").body.decode()) and "leat_slack " in t and t)
        for name in ("leat_total_submitted_total ", 'leat_gateway_answers_total{model="echo",status="200"}', "leat_partition_busy_seconds_total{"):
            self.assertIn(name, text)
        openly = self.gateway.get("/metrics", fields={"Accept": "application/openmetrics-text"})
        self.assertIn("openmetrics", openly.fields["content-type"])
        self.assertTrue(openly.body.endswith(b"# EOF\n"))
        families = re.findall(r"^# TYPE (\S+)", openly.body.decode(), re.M)
        self.assertEqual(len(families), len(set(families)))
        printed = subprocess.run([LEAT, "metrics", "--socket", self.leatd.socket], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn("leat_up 1\n", printed.stdout)

    def test_ledger(self) -> None:
        self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        words = [LEAT, "gateway", "--ledger", self.gateway.address, "--json"]

        def exact():
            out = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
            return json.loads(out.stdout) if out.returncode == 0 else None

        said = until(exact)
        self.assertTrue(said["exact"])
        self.assertEqual(said["nodes"][0]["submitted"], said["nodes"][0]["framed"])
        gone = subprocess.run([LEAT, "gateway", "--ledger", "127.0.0.1:1"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(gone.returncode, 1)
        self.assertIn("exact, but not all nodes were asked", gone.stdout)


class Hostile(WithNode):
    """Nobody's bytes, connections or slowness are another's trouble."""

    options = ("--connections", "64", "--depth", "4")

    def test_what_is_read_two_ways_is_not_read(self) -> None:
        post = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
        cases = [
            (post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400, 411)),
            (post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (411,)),
            (post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", (400,)),
            (post + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", (400,)),
            (post + b"Content-Length: 5, 6\r\n\r\nabcdef", (400,)),
            (post + b"Content-Length: +5\r\n\r\nabcde", (400,)),
            (post + b"Content-Length: 99999999999999999999\r\n\r\n", (400,)),
            (post + b"Content-Length: 999999999999\r\n\r\n", (413,)),
            (post + b"Content-Length : 5\r\n\r\nabcde", (400,)),
            (post + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n", (400,)),
            (b"GET /v2 HTTP/1.1\nHost: a\n\n\r\n\r\n", (400,)),
            (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", (400,)),
            (b"GET /v2 HTTP/1.1\r\n\r\n", (400,)),
            (b"GET /v2 HTTP/3.0\r\nHost: a\r\n\r\n", (400, 505)),
            (b"GET http://else?v2 HTTP/1.1\r\nHost: a\r\n\r\n", (400,)),
            (b"GET ftp://else/v2 HTTP/1.1\r\nHost: a\r\n\r\n", (400,)),
            (b"GET /v2\x00 HTTP/1.1\r\nHost: a\r\n\r\n", (400,)),
            (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20000 + b"\r\n\r\n", (431,)),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", (400,)),
        ]
        for sent, statuses in cases:
            with self.subTest(sent=sent[:90]), self.gateway.raw() as raw:
                raw.sendall(sent)
                answer, left = answer_of(raw)
                self.assertIsNotNone(answer)
                self.assertIn(answer.status, statuses)
                self.assertEqual(answer.fields.get("connection"), "close")
                self.assertEqual(left + raw.recv(10), b"")  # and nothing behind it is taken for a request
        self.assertEqual(self.gateway.get("/v2/health/live").status, 200)

    def test_slow_bodies_hold_no_slot(self) -> None:
        head = json.dumps(picture_head(80, 40, 9600)).encode()
        request = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(head), len(head) + 9600)
        pixels = bytes(i % 251 for i in range(9600))
        before = self.gateway.metrics()["leat_gateway_slow_bodies_total"]
        slow = [self.gateway.raw() for _ in range(12)]  # more than there are slots
        refused = 0
        for raw in slow:
            raw.sendall(request + head + pixels[:5000])
        until(lambda: self.gateway.metrics()["leat_gateway_slow_bodies_total"] >= before + 8)
        for _ in range(20):
            self.assertEqual(self.gateway.picture(80, 40, pixels).status, 200)
        for raw in slow:
            try:
                raw.sendall(pixels[5000:])
                answer, _ = answer_of(raw)
            except ConnectionError:
                answer = None
            if answer is not None and answer.status == 200:
                self.assertEqual(answer.json()["outputs"][0]["data"], [checksum(pixels)])
            else:  # all slots were taken when it came
                refused += 1
            raw.close()
        self.assertLess(refused, 8)

    def test_bytes_one_by_one(self) -> None:
        with self.gateway.raw() as raw:
            for byte in b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n":
                raw.sendall(bytes([byte]))
            self.assertEqual(answer_of(raw)[0].status, 200)

    def test_many_connections_leave_room(self) -> None:
        mine = self.gateway.connect()
        self.assertEqual(self.gateway.get("/v2/health/live", connection=mine).status, 200)
        crowd = [self.gateway.raw() for _ in range(150)]
        for raw in crowd[::3]:
            try:
                raw.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-")
            except ConnectionError:
                pass
        for _ in range(10):
            self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        self.assertEqual(self.gateway.get("/v2/health/live", connection=mine).status, 200)  # who was served before stays
        self.assertGreater(self.gateway.metrics()["leat_gateway_connections_evicted_total"], 50)
        for raw in crowd:
            raw.close()
        mine.close()

    def test_bodies_without_end_keep_no_place_from_who_was_served(self) -> None:
        mine = self.gateway.connect()
        self.assertEqual(self.gateway.picture(8, 4, bytes(96), connection=mine).status, 200)
        begun = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: 20\r\nContent-Length: 100000\r\n\r\n"
        crowd = []
        for _ in range(150):  # more than there are places, and each in the midst of a request
            crowd.append(self.gateway.raw())
            try:
                crowd[-1].sendall(begun + bytes(50))
            except ConnectionError:
                pass
        mine.sock.setblocking(False)
        self.assertRaises(BlockingIOError, mine.sock.recv, 1)  # nobody closed it
        mine.sock.settimeout(PATIENCE)
        self.assertEqual(self.gateway.picture(8, 4, bytes(96), connection=mine).status, 200)
        for raw in crowd:
            raw.close()
        mine.close()

    def test_clients_that_leave(self) -> None:
        head = json.dumps(picture_head(8, 4, 96)).encode()
        whole = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s" % (len(head), len(head) + 96, head + bytes(96))
        for cut in range(0, len(whole) + 1, 41):
            with self.gateway.raw() as raw:
                raw.sendall(whole[:cut])
        self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        until(lambda: self.gateway.metrics()['leat_gateway_in_flight{model="echo"}'] == 0)
        samples = self.gateway.metrics()
        answers = sum(v for k, v in samples.items() if k.startswith("leat_gateway_answers_total"))
        self.assertEqual(answers, samples['leat_gateway_requests_total{model="echo"}'])

    def test_expect_and_early_answers(self) -> None:
        with self.gateway.raw() as raw:
            head = json.dumps(picture_head(8, 4, 96)).encode()
            raw.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(head), len(head) + 96))
            self.assertEqual(raw.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            raw.sendall(head + bytes(96))
            self.assertEqual(answer_of(raw)[0].status, 200)
        body = bytes(3 << 20)  # its answer is known long before its end
        answer = self.gateway.post("/v2/models/none/infer", body)
        self.assertEqual(answer.status, 404)


class Refusals(WithNode):
    """What cannot be done is said at once, with the status that tells a balancer what to do."""

    values = {"partitions": 1, "latency": "[60, 120, 180, 240]", "slo_ms": 400}
    options = ("--depth", "3", "--client-in-flight", "6")

    def burst(self, fields: list[dict[str, str]]) -> list[Answer]:
        answers: list[Answer] = []
        threads = [threading.Thread(target=lambda f=f: answers.append(self.gateway.picture(8, 4, bytes(96), f))) for f in fields]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return answers

    def test_budgets(self) -> None:
        self.assertEqual(until(lambda: self.gateway.picture(8, 4, bytes(96)).status == 200 and 200), 200)  # a busy machine may be too late
        short = self.gateway.picture(8, 4, bytes(96), {"X-Leat-Budget-Us": "20000"})
        self.assertIn(short.status, (503, 504), short)
        self.assertNotEqual(short.fields["x-leat-reason"], "none")
        if short.status == 503:
            self.assertEqual(short.fields["retry-after"], "1")
        head = picture_head(8, 4, 96)
        head["parameters"]["timeout"] = 1  # microseconds
        self.assertEqual(self.gateway.infer("echo", head, bytes(96)).status, 504)
        longer = self.gateway.picture(8, 4, bytes(96), {"X-Leat-Budget-Us": "20000000"})  # than the objective
        self.assertEqual(longer.status, 200, longer)

    def test_a_batch_has_one_budget(self) -> None:
        def batch(count: int, ms: int, **fields: str) -> Answer:
            return self.gateway.infer("echo", picture_head(8, 4, 96 * count, count), bytes(96 * count), {"X-Leat-Budget-Us": str(1000 * ms)} | fields)

        self.assertEqual(batch(4, 20000).status, 200)
        long = batch(32, 300)  # 32 items take 60 ms each at best
        self.assertIn(long.status, (503, 504), long)
        self.assertEqual(long.fields["x-leat-reason"], "no_slack")
        self.assertEqual(self.gateway.picture(8, 4, bytes(96), {"X-Leat-Budget-Us": "20000000"}).status, 200)  # nothing is held
        self.assertTrue(until(lambda: self.gateway.metrics()['leat_gateway_in_flight{model="echo"}'] == 0))

    def test_what_is_full(self) -> None:
        def refused(fields: list[dict[str, str]], status: int, reason: str) -> list[Answer]:
            """Of a burst that is too much, those that were: again where it was served one after the other, on a busy machine."""

            def some() -> list[Answer]:
                answers = self.burst([{"X-Leat-Budget-Us": "50000000"} | f for f in fields])
                self.assertLessEqual({a.status for a in answers}, {200, 429, 503}, answers)
                self.assertIn(200, {a.status for a in answers})
                return [a for a in answers if a.status == status and a.fields["x-leat-reason"] == reason]

            return until(some)

        self.assertTrue(refused([{}] * 6, 503, "queue_full"))
        self.assertTrue(refused([{"X-Leat-Stream": "mine"}] * 6, 429, "queue_full"))
        self.assertTrue(refused([{"X-Leat-Stream": f"s{i % 4}"} for i in range(12)], 429, "client_full"))


class Shared(WithNode):
    options = ("--shared-memory",)

    def test_regions(self) -> None:
        path = f"/dev/shm/leat-test-{os.getpid()}"
        pixels = bytes(i % 253 for i in range(192))
        with open(path, "wb") as file:
            file.write(bytes(64) + pixels + bytes(64))
        os.symlink(path, path + "-link")
        self.addCleanup(os.unlink, path)
        self.addCleanup(os.unlink, path + "-link")
        key = "/" + os.path.basename(path)
        register = "/v2/systemsharedmemory/region/mine/register"
        for wrong in ({"key": key + "-link", "byte_size": 10}, {"key": "/../etc/passwd", "byte_size": 10}, {"key": key, "byte_size": 1 << 40}, {"key": key, "offset": 1 << 63, "byte_size": 1 << 63}, {"key": key}):
            self.assertEqual(self.gateway.post(register, json.dumps(wrong).encode()).status, 400, wrong)
        said = self.gateway.post(register, json.dumps({"key": key, "offset": 0, "byte_size": 320}).encode())
        self.assertEqual(said.status, 200, said)
        self.assertEqual(self.gateway.get("/v2/systemsharedmemory/status").json()[0]["name"], "mine")
        tensor = {"name": "image", "shape": [1, 8, 8, 3], "datatype": "UINT8"}
        tensor["parameters"] = {"shared_memory_region": "mine", "shared_memory_offset": 64, "shared_memory_byte_size": 192}
        output = {"name": "checksum", "parameters": {"shared_memory_region": "mine", "shared_memory_offset": 256, "shared_memory_byte_size": 8}}
        answer = self.gateway.infer("echo", {"inputs": [tensor], "outputs": [output]})
        self.assertEqual(answer.status, 200, answer)
        with open(path, "rb") as file:
            self.assertEqual(int.from_bytes(file.read()[256:264], "little"), checksum(pixels))
        os.truncate(path, 100)  # under the reader: an error, no fault
        self.assertEqual(self.gateway.infer("echo", {"inputs": [tensor], "outputs": [output]}).status, 400)
        self.assertEqual(self.gateway.post("/v2/systemsharedmemory/region/mine/unregister").status, 200)
        self.assertEqual(self.gateway.infer("echo", {"inputs": [tensor]}).status, 400)


class Lives(unittest.TestCase):
    """Tokens, sockets, the end, and a leatd that comes and goes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="leat-node-")
        self.folder = folder.name
        self.addCleanup(folder.cleanup)

    def leatd(self, **values: object) -> Leatd:
        out = Leatd(self.folder, EMULATED, **values)
        self.addCleanup(out.end)
        return out

    def gateway(self, *words: str, **more) -> Gateway:
        out = Gateway(*words, **more)
        self.addCleanup(out.end)
        return out

    def test_beyond_loopback_a_token_is_needed(self) -> None:
        out = subprocess.run([LEAT, "gateway", "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(out.returncode, 2)
        self.assertIn("--token-file", out.stderr)
        tokens = f"{self.folder}/tokens"
        with open(tokens, "w") as file:
            file.write("0123456789abcdef\n")
        os.chmod(tokens, 0o600)
        gateway = self.gateway(self.leatd().socket, "--token-file", tokens)
        self.assertEqual(gateway.get("/v2/health/live").status, 200)
        for given in ({}, {"Authorization": "Bearer 0123456789abcdeg"}, {"Authorization": "0123456789abcdef"}, {"Authorization": "Bearer "}):
            self.assertEqual(gateway.get("/v2", fields=given).status, 401, given)
            self.assertEqual(gateway.picture(8, 4, bytes(96), given).status, 401, given)
        self.assertEqual(gateway.picture(8, 4, bytes(96), {"Authorization": "Bearer 0123456789abcdef"}).status, 200)
        for words in (["--haproxy", f"a={gateway.address}/9000"], ["--ledger", gateway.address]):
            out = subprocess.run([LEAT, "gateway", *words], capture_output=True, text=True, timeout=PATIENCE)
            self.assertIn(f"{gateway.address} wants another token; name its file by --token-file", out.stdout + out.stderr)
            words += ["--token-file", tokens]
            self.assertTrue(until(lambda: subprocess.run([LEAT, "gateway", *words], capture_output=True, timeout=PATIENCE).returncode == 0))
        out = subprocess.run([LEAT, "gateway", "--haproxy", gateway.address, "--token-file", tokens], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(out.stderr, "")

    def test_a_unix_socket(self) -> None:
        path = f"{self.folder}/gateway.sock"
        gateway = self.gateway(self.leatd().socket, "--listen", f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(path)
            raw.sendall(b"GET /v2/models/echo HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(answer_of(raw)[0].json()["name"], "echo")
        self.assertEqual(gateway.end(), 0)
        self.assertFalse(os.path.exists(path))

    def test_it_drains(self) -> None:
        leatd = self.leatd(partitions=1, latency="[500]")
        self.assertTrue(until(lambda: self.drained(leatd)))

    def drained(self, leatd: Leatd) -> bool:
        """False: this process was held up, and the gateway was quiet for so long that it has ended; or leatd was, and it was taken for gone."""
        gateway = self.gateway(leatd.socket, "--agent", "127.0.0.1:0", "--drain-ms", "20000")
        answers: list[Answer] = []
        asked = threading.Thread(target=lambda: answers.append(gateway.picture(8, 4, bytes(96))))
        keeps = gateway.connect()
        self.assertEqual(gateway.get("/v2/health/ready", connection=keeps).status, 200)
        asked.start()
        until(lambda: answers or gateway.metrics().get('leat_gateway_in_flight{model="echo"}') == 1)
        gateway.process.send_signal(signal.SIGTERM)
        try:
            said = until(lambda: (a := gateway.get("/v2/health/ready", connection=keeps)).status == 503 and a)
            self.assertEqual(said.fields["connection"], "close")
            self.assertEqual(gateway.get("/v2/health/live").status, 200)
            in_time = gateway.picture(8, 4, bytes(96)).status == 200  # who still comes is served
        except (OSError, http.client.HTTPException):
            in_time = False
        asked.join()
        self.assertEqual(gateway.process.wait(PATIENCE), 0)
        return in_time and answers[0].status == 200

    def test_a_leatd_that_comes_and_goes(self) -> None:
        leatd = self.leatd(partitions=1, latency="[300]")
        gateway = self.gateway(leatd.socket)
        self.assertEqual(gateway.picture(8, 4, bytes(96)).status, 200)
        answers: list[Answer] = []
        asked = threading.Thread(target=lambda: answers.append(gateway.picture(8, 4, bytes(96))))
        leatd.process.send_signal(signal.SIGSTOP)  # or it may be the faster
        asked.start()
        self.assertTrue(until(lambda: gateway.metrics().get("leat_gateway_submitted_total" + '{model="echo"}') == 2))
        leatd.end()
        asked.join()
        self.assertEqual((answers[0].status, answers[0].fields["x-leat-reason"]), (503, "leatd_gone"))
        self.assertEqual(until(lambda: gateway.get("/v2/health/ready").status == 503 and 503), 503)
        self.assertEqual(gateway.get("/v2/models/echo/ready").status, 503)
        self.assertEqual(gateway.picture(8, 4, bytes(96)).status, 503)
        leatd.start()
        self.assertEqual(until(lambda: gateway.get("/v2/health/ready").status == 200 and 200), 200)
        self.assertEqual(gateway.picture(8, 4, bytes(96)).status, 200)

    def test_before_leatd(self) -> None:
        gateway = self.gateway(f"{self.folder}/leat.sock", wait=False)
        self.assertEqual(gateway.get("/v2/health/live").status, 200)
        self.assertEqual(gateway.get("/v2/health/ready").status, 503)
        self.assertEqual(gateway.picture(8, 4, bytes(96)).status, 503)

    def test_haproxy_configuration(self) -> None:
        gateway = self.gateway(self.leatd(latency="[10]").socket)
        words = [LEAT, "gateway", "--haproxy", f"a={gateway.address}/9000,b=127.0.0.1:1/9001"]
        out = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(out.returncode, 0, out.stderr)
        for line in ("balance leastconn", "option redispatch", f"server a {gateway.address} weight 100 agent-check", "tune.bufsize"):
            self.assertIn(line, out.stdout)
        self.assertIn("127.0.0.1:1 does not say", out.stderr)
        if haproxy := shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"):
            path = f"{self.folder}/haproxy.cfg"
            with open(path, "w") as file:
                file.write(out.stdout.replace("/run/", self.folder + "/"))
            checked = subprocess.run([haproxy, "-c", "-f", path], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        bad = subprocess.run([LEAT, "gateway", "--haproxy", "a=here:port"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(bad.returncode, 2)


class Tensors(WithNode):
    """A model's own tensors: the same numbers as by the client library; and by Triton's client where there is one."""

    text = EMULATED + CPU + TENSORS + PICTURES
    values = {"model": os.environ["LEAT_DETECT"]}

    def setUp(self) -> None:
        said = self.gateway.get("/v2/models/tensors").json()
        (self.input,) = said["inputs"]
        self.assertEqual(self.input["shape"][0], -1)
        self.input["shape"][0] = 1
        self.outputs = said["outputs"]
        self.count = 1
        for d in self.input["shape"]:
            self.count *= d

    def test_they_are_described(self) -> None:
        self.assertEqual((self.input["datatype"], self.input["shape"][:2]), ("FP32", [1, 3]))
        self.assertTrue(self.outputs)
        config = self.gateway.get("/v2/models/tensors/config").json()
        self.assertEqual(config["input"][0], {"name": self.input["name"], "data_type": "TYPE_FP32", "dims": self.input["shape"][1:]})
        metadata = eval(config["parameters"]["metadata"]["string_value"])  # as Ultralytics' wrapper reads it
        self.assertEqual(metadata["task"], "detect")
        self.assertEqual(metadata["imgsz"], self.input["shape"][2:])

    def test_the_same_numbers_as_by_the_library(self) -> None:
        try:
            import numpy as np

            import leat
        except ImportError as missing:
            self.skipTest(str(missing))
        values = np.random.default_rng(7).random(self.count, np.float32)
        tensor = self.input | {"parameters": {"binary_data_size": 4 * self.count}}
        head = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
        answer = self.gateway.infer("tensors", head, values.tobytes())
        self.assertEqual(answer.status, 200, answer)
        size = int(answer.fields["inference-header-content-length"])
        said, at = json.loads(answer.body[:size]), size
        with leat.connect(self.leatd.socket) as client:
            stream = client.open_stream("tensors", "tensors", tensors=[("float32", self.input["shape"][1:])])
            with stream.acquire() as frame:
                frame.tensors[0][:] = values.reshape(frame.tensors[0].shape)
                frame.submit()
            with client.next_answer(PATIENCE) as direct:
                parts = {part.name: part.array.copy() for part in direct.result.parts}
        self.assertEqual({o["name"] for o in said["outputs"]}, set(parts))
        for output in said["outputs"]:
            bytes_of = output["parameters"]["binary_data_size"]
            part = parts[output["name"]]
            self.assertEqual(output["shape"], [1, *part.shape])
            self.assertEqual(answer.body[at : at + bytes_of], part.tobytes())
            at += bytes_of
        self.assertEqual(at, len(answer.body))

    def test_a_batch_is_its_items_one_by_one(self) -> None:
        size = 4 * self.count
        items = [bytes([i % 3] * size) if i else bytes(size) for i in range(5)]

        def outputs(count: int, data: bytes) -> list[tuple[list[int], bytes]]:
            shape = [count, *self.input["shape"][1:]]
            head = {"inputs": [self.input | {"shape": shape, "parameters": {"binary_data_size": len(data)}}], "parameters": {"binary_data_output": True}}
            answer = self.gateway.infer("tensors", head, data)
            self.assertEqual(answer.status, 200, answer)
            at = int(answer.fields["inference-header-content-length"])
            out = []
            for output in json.loads(answer.body[:at])["outputs"]:
                taken = output["parameters"]["binary_data_size"]
                out.append((output["shape"], answer.body[at : at + taken]))
                at += taken
            self.assertEqual(at, len(answer.body))
            return out

        alone = [outputs(1, item) for item in items]
        together = outputs(len(items), b"".join(items))
        for i, (shape, data) in enumerate(together):
            self.assertEqual(shape, [len(items), *alone[0][i][0][1:]])
            self.assertEqual(data, b"".join(one[i][1] for one in alone))

    def test_items_that_differ_cannot_be_joined(self) -> None:
        """Boxes of two pictures, of which one has some and the other none."""
        width, height = 64, 48
        plain, square = bytes([112] * width * height * 3), bytearray([112] * width * height * 3)
        for y in range(14, 34):
            square[(y * width + 20) * 3 : (y * width + 40) * 3] = bytes([208, 16, 16]) * 20
        rows = [self.gateway.infer("pictures", picture_head(width, height, len(p)), bytes(p)).json()["outputs"][0]["shape"][1] for p in (plain, square)]
        both = self.gateway.infer("pictures", picture_head(width, height, 2 * len(plain), 2), plain + bytes(square))
        if rows[0] == rows[1]:
            self.assertEqual((both.status, both.json()["outputs"][0]["shape"]), (200, [2, rows[0], 6]))
        else:
            self.assertEqual(both.status, 400, both)
            self.assertIn("one by one", both.json()["error"])

    def test_pictures_come_back_as_boxes(self) -> None:
        answer = self.gateway.infer("pictures", picture_head(64, 48, 64 * 48 * 3), bytes(64 * 48 * 3))
        self.assertEqual(answer.status, 200, answer)
        (output,) = answer.json()["outputs"]
        self.assertEqual((output["name"], output["shape"][2]), ("detections", 6))

    def test_deepstack(self) -> None:
        """A shape on a picture, in a form: its box comes back, as DeepStack's clients read it."""
        png, (width, height) = made_png()
        form = b'--b\r\nContent-Disposition: form-data; name="min_confidence"\r\n\r\n0.2\r\n--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n' + png + b"\r\n--b--\r\n"
        for path, status in (("/v1/vision/custom/pictures", 200), ("/v1/vision/custom/none", 404), ("/v1/vision/detection", 404)):
            answer = self.gateway.post(path, form, {"Content-Type": "multipart/form-data; boundary=b"})
            self.assertEqual(answer.status, status, answer)
            if status == 200:
                self.assertTrue(answer.json()["success"])
                for found in answer.json()["predictions"]:
                    self.assertTrue(0 <= found["x_min"] <= found["x_max"] <= width and 0 <= found["y_min"] <= found["y_max"] <= height)
        playlist = b"#EXTM3U\n#EXTINF:1\nfile:///etc/passwd\n"
        for wrong in (playlist, png[:40], b"\xff\xd8\xff\xd9", b"\x89PNG\r\n\x1a\n" + bytes(40)):
            answer = self.gateway.post("/v1/vision/custom/pictures", wrong)
            self.assertEqual((answer.status, answer.json()["success"]), (400, False), wrong)


if __name__ == "__main__":
    main()
