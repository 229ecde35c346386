#!/usr/bin/env bash
# GStreamer's jpegenc writes the samples of limited-range video into the JPEG as they are: the file says full range (JFIF), and is not.
#
# Input: one white frame, I420, colorimetry bt601 (limited range: white is 235), as cameras and decoders give it.
# Guess before the run: jpegenc asks for full range in its caps or converts; a reader sees white as 255.
# Seen with GStreamer 1.22.0 (Debian gstreamer1.0-plugins-good 1.22.0): djpeg reads 235. With RGB before it, it reads 255.
# Status: 0 as seen, 1 something else came out, 77 these packages are not within reach
set -euo pipefail
. "$(dirname "$0")/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
with_packages gstreamer1.0-tools=1.22.0-2+deb12u1 \
  gstreamer1.0-plugins-base=1.22.0-3+deb12u7 \
  gstreamer1.0-plugins-good=1.22.0-5+deb12u4 \
  libjpeg-turbo-progs=1:2.1.5-2
version=$(gst-launch-1.0 --version 2>/dev/null | sed -n 's/^gst-launch-1.0 version //p')
[[ $version == 1.22.* ]] || { echo "skipped: GStreamer '$version'; this was seen with 1.22.0"; exit 77; }
gst-inspect-1.0 --exists jpegenc && command -v djpeg >/dev/null || { echo "skipped: no jpegenc, or no djpeg"; exit 77; }
white_of() {  # what djpeg reads of the middle pixel
  gst-launch-1.0 -q videotestsrc pattern=white num-buffers=1 ! "video/x-raw,width=64,height=48,$1" ! jpegenc ! filesink location="$work/white.jpg"
  djpeg -ppm "$work/white.jpg" | tail -c 4608 | head -c 3 | od -An -t u1 | tr -s ' ' | sed 's/^ //'
}
limited=$(white_of "format=I420,colorimetry=bt601")
rgb=$(white_of "format=RGB")
echo "GStreamer $version: white of limited range reads as $limited, of RGB as $rgb"
[ "$limited" = "235 235 235" ] && [ "$rgb" = "255 255 255" ] || { echo "this is not what was seen with 1.22.0" >&2; exit 1; }
