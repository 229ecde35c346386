"""docs/examples/answers_to_*.py: lines of answers in, and what comes out at the other end."""

import contextlib
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
PERSON = {"class": "person", "score": 0.93, "box": [412.0, 96.5, 520.3, 388.0], "track": 12}
LINES = [
    {"v": 1, "stream": "gate", "application": "people", "picture": 1, "captured": "2026-11-24T02:15:07.123Z",
     "latency_ms": 31.4, "outcome": "completed", "detections": [PERSON, {"class": 7, "score": 0.5, "box": [0, 0, 1, 1]}]},
    {"v": 1, "lost": 240},
    {"v": 1, "stream": "gate", "application": "people", "picture": 2, "captured": "2026-11-24T02:15:07.163Z",
     "latency_ms": 90.0, "outcome": "dropped", "reason": "expired", "reason_text": "too late"},
    {"v": 1, "stream": "yard, north", "application": "people", "picture": 3, "captured": "2026-11-24T02:15:07.203Z",
     "latency_ms": 30.0, "outcome": "completed", "detections": []},
]
TEXT = "".join(json.dumps(line) + "\n" for line in LINES)


class AnswerExamples(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_example(self, name: str, *words: str, **environment: str) -> None:
        subprocess.run([sys.executable, EXAMPLES / name, *words], input=TEXT, text=True, check=True, timeout=60,
                       env={**os.environ, **environment})

    def test_sqlite(self) -> None:
        path = os.path.join(self.folder.name, "answers.db")
        for _ in range(2):
            self.run_example("answers_to_sqlite.py", path)
        rows = sqlite3.connect(path).execute("SELECT camera, class, score, x0, y1, track FROM detections").fetchall()
        self.assertEqual(rows, 2 * [("gate", "person", 0.93, 412.0, 388.0, 12), ("gate", "7", 0.5, 0, 1, None)])

    def test_webhook(self) -> None:
        posted = []

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Hook) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.run_example("answers_to_webhook.py", f"http://127.0.0.1:{server.server_port}/hook")
            server.shutdown()
        self.assertEqual(posted, LINES[:1])

    def test_mqtt(self) -> None:
        log = os.path.join(self.folder.name, "published")
        fake = os.path.join(self.folder.name, "mosquitto_pub")
        Path(fake).write_text(f'#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >> "{log}"\necho . >> "{log}"\n')
        os.chmod(fake, 0o755)
        self.run_example("answers_to_mqtt.py", "broker", PATH=self.folder.name + os.pathsep + os.environ["PATH"])
        calls = [call.strip().split("\n") for call in Path(log).read_text().split("\n.\n") if call.strip()]
        self.assertEqual([call[3] for call in calls],
                         ["homeassistant/sensor/leat_gate/config", "leat/gate",
                          "homeassistant/sensor/leat_yard__north/config", "leat/yard__north"])
        self.assertEqual(calls[0][-1], "-r")
        self.assertEqual(json.loads(calls[0][5])["state_topic"], "leat/gate")
        self.assertEqual(json.loads(calls[1][5]), LINES[0])

    def test_browser(self) -> None:
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as taken:
            port = taken.server_port
        page = f"http://127.0.0.1:{port}"
        program = subprocess.Popen([sys.executable, EXAMPLES / "answers_to_browser.py", str(port)],
                                   stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        feeder = threading.Thread(target=self.feed, args=(program,))
        self.addCleanup(feeder.join)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        feeder.start()
        while True:
            try:
                self.assertIn(b"EventSource", urllib.request.urlopen(page, timeout=10).read())
                break
            except OSError:  # it does not serve yet
                self.assertIsNone(program.poll())
        with urllib.request.urlopen(page + "/answers", timeout=10) as answers:
            self.assertEqual(json.loads(answers.readline().decode().removeprefix("data: ")), LINES[0])

    @staticmethod
    def feed(program: subprocess.Popen) -> None:
        try:
            while True:  # until the reader, who may come a moment later than this begins, has one
                program.stdin.write(json.dumps(LINES[0]) + "\n")
                program.stdin.flush()
        except OSError:
            pass
        with contextlib.suppress(OSError):
            program.stdin.close()


if __name__ == "__main__":
    unittest.main()
