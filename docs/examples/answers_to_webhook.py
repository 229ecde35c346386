#!/usr/bin/env python3
"""Answers (leat feed --answers -) with detections to a webhook, a POST each. Usage: answers_to_webhook.py URL"""
import json
import sys
import urllib.request

for line in sys.stdin:
    if not json.loads(line).get("detections"):
        continue
    request = urllib.request.Request(sys.argv[1], line.encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=5).close()
    except OSError as error:  # the next answer may get through
        print(f"answers_to_webhook: {error}", file=sys.stderr)
