#!/usr/bin/env python3
"""Answers (leat feed --answers -) to an MQTT broker, each camera a sensor of Home Assistant. Usage: answers_to_mqtt.py HOST"""
import json
import re
import subprocess
import sys


def publish(topic: str, message: dict, *options: str) -> None:
    subprocess.run(["mosquitto_pub", "-h", sys.argv[1], "-t", topic, "-m", json.dumps(message), *options], check=False)


known = set()
for line in sys.stdin:
    answer = json.loads(line)
    if "detections" not in answer:
        continue  # lost lines, dropped frames
    camera = re.sub(r"\W", "_", answer["stream"])
    if camera not in known:  # Home Assistant finds the sensor by this, and keeps it
        known.add(camera)
        publish(f"homeassistant/sensor/leat_{camera}/config",
                {"name": answer["stream"], "unique_id": f"leat_{camera}", "state_topic": f"leat/{camera}",
                 "value_template": "{{ value_json.detections | length }}", "json_attributes_topic": f"leat/{camera}"}, "-r")
    publish(f"leat/{camera}", answer)
