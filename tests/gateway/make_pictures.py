"""Writes JPEG and PNG files into a folder, made by Pillow and by libjpeg-turbo's cjpeg and jpegtran, and beside each, as
NAME.rgb, the pixels that Pillow reads from it. What is not installed leaves its files out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SIDES = (160, 120)
PATCHES = ((200, 30, 90), (240, 240, 240), (12, 12, 12), (20, 180, 60), (30, 60, 220), (128, 128, 128))


def patches(image, draw):
    """Flat patches over a gentle gradient: colours that a chroma grid of half the size shows as they are."""
    width, height = SIDES
    for i, colour in enumerate(PATCHES):
        x, y = 16 + 48 * (i % 3), 16 + 48 * (i // 3)
        draw.rectangle((x, y, x + 31, y + 31), fill=colour)
    return image


def main(folder: Path) -> None:
    try:
        from PIL import Image, ImageDraw, ImageOps
    except ImportError:
        return
    gradient = Image.linear_gradient("L").resize(SIDES)
    picture = Image.merge("RGB", (gradient, gradient.rotate(180), Image.new("L", SIDES, 90)))
    patches(picture, ImageDraw.Draw(picture))

    def save(name: str, image, **options) -> None:
        image.save(folder / name, **options)
        with Image.open(folder / name) as read:
            (folder / f"{name}.rgb").write_bytes(ImageOps.exif_transpose(read).convert("RGB").tobytes())

    for subsampling, word in ((0, "444"), (1, "422"), (2, "420")):
        save(f"pillow-{word}.jpg", picture, quality=95, subsampling=subsampling)
    save("pillow-progressive.jpg", picture, quality=95, progressive=True)
    save("pillow-grey.jpg", picture.convert("L"), quality=95)
    save("pillow-cmyk.jpg", picture.convert("CMYK"), quality=95)
    exif = Image.Exif()
    exif[0x0110] = "a camera"
    save("pillow-exif.jpg", picture, quality=95, exif=exif)
    quarters = Image.new("RGB", SIDES, PATCHES[0])
    for at, colour in (((80, 0, 159, 59), PATCHES[3]), ((0, 60, 79, 119), PATCHES[4]), ((80, 60, 159, 119), PATCHES[1])):
        ImageDraw.Draw(quarters).rectangle(at, fill=colour)
    for turn in range(1, 9):  # EXIF's orientations
        exif = Image.Exif()
        exif[0x0112] = turn
        for subsampling, word in ((0, "444"), (2, "420")):
            save(f"turn-{turn}-{word}.jpg", quarters, quality=95, subsampling=subsampling, exif=exif)
    save("pillow.png", picture)
    save("pillow-grey.png", picture.convert("L"))
    save("pillow-palette.png", picture.quantize(64))
    alpha = picture.copy()
    alpha.putalpha(gradient)
    save("pillow-alpha.png", alpha)

    if cjpeg := shutil.which("cjpeg"):
        ppm = folder / "picture.ppm"
        picture.save(ppm)

        def made(name: str, *words: str) -> None:
            (folder / name).write_bytes(subprocess.run([*words, str(ppm)], check=True, capture_output=True).stdout)
            with Image.open(folder / name) as read:
                (folder / f"{name}.rgb").write_bytes(read.convert("RGB").tobytes())

        made("cjpeg-420.jpg", cjpeg, "-quality", "95")
        made("cjpeg-restarts.jpg", cjpeg, "-quality", "95", "-restart", "2")
        made("cjpeg-progressive.jpg", cjpeg, "-quality", "95", "-progressive")
        made("cjpeg-optimized.jpg", cjpeg, "-quality", "95", "-optimize")
        ppm.unlink()
        if jpegtran := shutil.which("jpegtran"):
            ppm = folder / "cjpeg-420.jpg"
            made("jpegtran-progressive.jpg", jpegtran, "-copy", "all", "-progressive")
            made("jpegtran-restarts.jpg", jpegtran, "-copy", "all", "-restart", "1B")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
