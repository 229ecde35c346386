#!/usr/bin/env python3
"""Answers (leat feed --answers -) into SQLite, a row for each detection. Usage: answers_to_sqlite.py FILE"""
import json
import sqlite3
import sys

with sqlite3.connect(sys.argv[1], isolation_level=None) as database:
    database.execute("CREATE TABLE IF NOT EXISTS detections (captured, camera, class, score, x0, y0, x1, y1, track)")
    for line in sys.stdin:
        answer = json.loads(line)
        database.executemany("INSERT INTO detections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             [(answer["captured"], answer["stream"], str(d["class"]), d["score"], *d["box"], d.get("track"))
                              for d in answer.get("detections", [])])
