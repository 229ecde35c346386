"""What clients other than ours send to `leat gateway`: pictures of Pillow's and libjpeg-turbo's, whole and cut, bodies
that gzip packed, and targets as curl writes them for a proxy."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from gateway import CPU, EMULATED, PICTURES, WithNode, checksum, main, picture_head


class Encodings(WithNode):
    def test_identity_is_taken_and_gzip_is_told_what_is(self) -> None:
        pixels = bytes(range(192))
        answer = self.gateway.picture(8, 8, pixels, {"Content-Encoding": "identity"})
        self.assertEqual((answer.status, answer.json()["outputs"][0]["data"]), (200, [checksum(pixels)]), answer)
        packed = gzip.compress(json.dumps(picture_head(8, 8, 192)).encode() + pixels)
        for path in ("/v2/models/echo/infer", "/v1/vision/custom/echo"):
            answer = self.gateway.post(path, packed, {"Content-Encoding": "gzip"})
            self.assertEqual((answer.status, answer.fields.get("accept-encoding")), (415, "identity"), answer)

    def test_a_target_that_names_its_host(self) -> None:
        curl = shutil.which("curl")
        if curl is None:
            self.skipTest("curl is not installed")
        there = f"http://127.0.0.1:{self.gateway.port}"
        words = [curl, "--silent", "--noproxy", "", "--proxy", there, "--output", os.devnull, "--write-out", "%{http_code}"]
        said = subprocess.run([*words, "http://a.node/v2/health/live"], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "200")


class Pictures(WithNode):
    text, values = EMULATED + CPU + PICTURES, {"model": os.environ["LEAT_DETECT"]}

    def test_a_picture_that_is_cut_short_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, Path(__file__).with_name("make_pictures.py"), folder], check=True)
            files = {p.name: p.read_bytes() for p in Path(folder).iterdir() if p.suffix in (".jpg", ".png")}
        if not files:
            self.skipTest("neither Pillow (python3-pil) nor libjpeg-turbo-progs is installed")
        for name, whole in files.items():
            answer = self.gateway.post("/v1/vision/custom/pictures", whole)
            self.assertEqual((answer.status, answer.json()["success"]), (200, True), name)
            for twentieth in (1, 10, 19):
                answer = self.gateway.post("/v1/vision/custom/pictures", whole[: len(whole) * twentieth // 20])
                self.assertEqual((answer.status, answer.json()["success"]), (400, False), f"{name} {twentieth}")
                self.assertIn("cut short", answer.json()["error"])


if __name__ == "__main__":
    main()
