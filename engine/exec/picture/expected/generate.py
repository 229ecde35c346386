#!/usr/bin/python3
"""Writes pictures and what Pillow and OpenCV resize them to: cases.txt and pixels.bin, which resize_test.cpp reads.

    generate.py ASTRONAUT.png FOLDER

ASTRONAUT.png is in Debian's python3-skimage (skimage/data): a photograph of NASA's, in the public domain. Needs
python3-pil, python3-opencv and ffmpeg. Written with Pillow 9.4.0, OpenCV 4.6.0 and ffmpeg 5.1 of Debian 12.

A line of cases.txt: the source, "source" and its pixel format, width and height, and where its bytes begin in pixels.bin;
or the source, the word of resize=, the box x0 y0 x1 y1, width and height of the target, and where its bytes (RGB) begin.
"""
import io
import subprocess
import sys

import cv2
import numpy
from PIL import Image

PILLOW = {"antialias": Image.BILINEAR, "cubic": Image.BICUBIC, "lanczos": Image.LANCZOS, "nearest": Image.NEAREST}
OPENCV = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}
WIDTH, HEIGHT = 80, 60

lines, pixels = [], b""


def put(words, data):
    global pixels
    lines.append(f"{words} {len(pixels)}")
    pixels += data


def resized(way, picture, box, size):
    if way in PILLOW:
        return numpy.asarray(Image.fromarray(picture).resize(size, PILLOW[way], box=box))
    x0, y0, x1, y1 = (int(v) for v in box)
    return cv2.resize(numpy.ascontiguousarray(picture[y0:y1, x0:x1]), size, interpolation=OPENCV[way])


def cases(name, picture, boxes):
    for way in (*PILLOW, *OPENCV):
        for box, size in boxes:
            whole = all(float(v).is_integer() for v in box)
            # OpenCV cuts whole pixels, and its linear way repeats the cut's edge.
            if way in OPENCV and not whole or way == "linear" and box != (0, 0, *picture.shape[1::-1]):
                continue
            if way == "nearest" and whole:  # middles between two pixels: Pillow adds up its steps, and rounds with them
                continue
            put(f"{name} {way} {' '.join(map(str, box))} {size[0]} {size[1]}", resized(way, picture, box, size).tobytes())


def main():
    photograph, folder = sys.argv[1:3]
    # A face before a flag, twice as large as needed: sharp in every pixel.
    natural = Image.open(photograph).convert("RGB").crop((180, 40, 180 + 2 * WIDTH, 40 + 2 * HEIGHT))
    natural = natural.resize((WIDTH, HEIGHT), Image.BOX)
    put(f"natural source rgb24 {WIDTH} {HEIGHT}", natural.tobytes())

    width, height = 48, 36
    random = numpy.random.RandomState(42)
    made = numpy.zeros((height, width, 3), numpy.uint8)
    made[::3] = 255  # lines
    made[:, ::5, 1] = 255
    made[:, 24:, 2] = numpy.arange(24) * 11
    made[18:, :16] = random.randint(0, 2, (18, 16, 3)) * 255
    made[18:, 16:32] = random.randint(0, 256, (18, 16, 3))
    put(f"made source rgb24 {width} {height}", made.tobytes())

    coded = io.BytesIO()
    natural.save(coded, "JPEG", quality=92, subsampling=2)
    planes = subprocess.run(["ffmpeg", "-v", "error", "-f", "image2pipe", "-c:v", "mjpeg", "-i", "-", "-f", "rawvideo",
                             "-pix_fmt", "yuvj420p", "-"], input=coded.getvalue(), capture_output=True, check=True).stdout
    put(f"jpeg source i420 {WIDTH} {HEIGHT}", planes)

    whole = (0, 0, WIDTH, HEIGHT)
    for name, picture in (("natural", natural), ("made", Image.fromarray(made))):
        w, h = picture.size
        cases(name, numpy.asarray(picture), [((0, 0, w, h), (25, 19)), ((0, 0, w, h), (7, 5)), ((0, 0, w, h), (90, 4)),
                                             ((10, 8, 27, 21), (22, 17)), ((10.25, 8.5, 27.75, 21.1), (22, 17)),
                                             ((5.5, 3.25, w - 4.6, h - 7.9), (17, 13))])
    decoded = numpy.asarray(Image.open(coded).convert("RGB"))
    cases("jpeg", decoded, [(whole, (25, 19)), ((10, 8, 27, 21), (22, 17))])
    with open(f"{folder}/cases.txt", "w") as out:
        out.write("\n".join(lines) + "\n")
    with open(f"{folder}/pixels.bin", "wb") as out:
        out.write(pixels)


main()
