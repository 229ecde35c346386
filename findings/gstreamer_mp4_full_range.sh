#!/usr/bin/env bash
# GStreamer's qtdemux loses the full-range flag of an MP4's colr box, and what is behind it believes the caps, not the bitstream.
#
# Input: full-range H.264 in MP4 by ffmpeg: the SPS says full range, and so does the colr box (nclx, flag 0x80). The same bitstream without MP4 beside it.
# Guess before the run: both reach avdec_h264's caps as colorimetry 1:3:5:1, full range.
# Seen with GStreamer 1.22.0 (Debian gstreamer1.0-plugins-good 1.22.0, gstreamer1.0-libav 1.22.0) and ffmpeg 5.1.9: out of MP4 avdec_h264 says bt709,
# which is limited range; without MP4, and with the colr box renamed, 1:3:5:1.
# Status: 0 as seen, 1 something else came out, 77 these packages are not within reach
set -euo pipefail
. "$(dirname "$0")/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
with_packages ffmpeg=7:5.1.9-0+deb12u1 \
  gstreamer1.0-tools=1.22.0-2+deb12u1 \
  gstreamer1.0-plugins-base=1.22.0-3+deb12u7 \
  gstreamer1.0-plugins-good=1.22.0-5+deb12u4 \
  gstreamer1.0-plugins-bad=1.22.0-4+deb12u8 \
  gstreamer1.0-libav=1.22.0-2
version=$(gst-launch-1.0 --version 2>/dev/null | sed -n 's/^gst-launch-1.0 version //p')
[[ $version == 1.22.* ]] || { echo "skipped: GStreamer '$version'; this was seen with 1.22.0"; exit 77; }
for element in qtdemux h264parse avdec_h264; do
  gst-inspect-1.0 --exists "$element" || { echo "skipped: no element $element"; exit 77; }
done
ffmpeg -hide_banner -encoders 2>/dev/null | grep libx264 >/dev/null || { echo "skipped: no ffmpeg with libx264"; exit 77; }
ffmpeg -loglevel error -f lavfi -i testsrc2=s=160x120:d=0.1 -vf scale=out_range=pc:out_color_matrix=bt709,format=yuv420p -c:v libx264 -color_range pc -colorspace bt709 \
  -color_primaries bt709 -color_trc bt709 "$work/full.mp4"
ffmpeg -loglevel error -i "$work/full.mp4" -c copy "$work/full.h264"
sed 's/colrnclx/freenclx/' "$work/full.mp4" >"$work/no_colr.mp4"
caps_behind() {  # FILE ELEMENTS: the colorimetry that avdec_h264 says
  # shellcheck disable=SC2086
  gst-launch-1.0 -v filesrc location="$1" ! $2 ! avdec_h264 ! fakesink 2>/dev/null |
    sed -n 's/.*avdec_h264-\?[0-9]*\.GstPad:src: caps.*colorimetry=(string)\([^,]*\),.*/\1/p' | sed -n 1p
}
mp4=$(caps_behind "$work/full.mp4" "qtdemux ! h264parse")
bare=$(caps_behind "$work/full.h264" h264parse)
no_colr=$(caps_behind "$work/no_colr.mp4" "qtdemux ! h264parse")
echo "GStreamer $version: out of MP4 $mp4, without MP4 $bare, without the colr box $no_colr"
[ "$mp4" = bt709 ] && [ "$bare" = 1:3:5:1 ] && [ "$no_colr" = 1:3:5:1 ] || { echo "this is not what was seen with 1.22.0" >&2; exit 1; }
