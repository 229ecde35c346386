#!/usr/bin/env bash
# swscale's bilinear moves the chroma of 4:2:0 down by half a line of luma when it makes RGB.
#
# Input: 16x16 yuv420p, gray, full range; one line of chroma (the fifth, which lies between luma lines 8 and 9) has V = 228.
# Guess before the run: as for bicubic and zimg, lines 8 and 9 get the most of it, by the same amount, and 7 and 10 the same less.
# Seen with ffmpeg 5.1.9 (Debian 7:5.1.9-0+deb12u1), red above gray: bilinear 8:70 9:127 10:70; bicubic 8:122 9:122; zscale bilinear 7:35 8:105 9:105 10:35.
# accurate_rnd, full_chroma_int, full_chroma_inp and bitexact change nothing about it.
# Status: 0 as seen, 1 something else came out, 77 this package is not within reach
set -euo pipefail
. "$(dirname "$0")/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
with_packages ffmpeg=7:5.1.9-0+deb12u1
version=$(ffmpeg -version 2>/dev/null | sed -n '1s/^ffmpeg version \([^ ]*\).*/\1/p') || { echo "skipped: no ffmpeg"; exit 77; }
[[ $version == 5.1.* ]] || { echo "skipped: ffmpeg $version; this was seen with 5.1.9"; exit 77; }
ffmpeg -hide_banner -filters 2>/dev/null | grep ' zscale ' >/dev/null || { echo "skipped: this ffmpeg has no zscale"; exit 77; }
{
  head -c 256 /dev/zero | tr '\0' '\200'
  head -c 64 /dev/zero | tr '\0' '\200'
  head -c 32 /dev/zero | tr '\0' '\200'
  head -c 8 /dev/zero | tr '\0' '\344'
  head -c 24 /dev/zero | tr '\0' '\200'
} >"$work/line.yuv"
# The fifth pixel's red, line by line, less the gray of 128.
reds() {
  ffmpeg -hide_banner -loglevel error -f rawvideo -pix_fmt yuv420p -s 16x16 -i "$work/line.yuv" -vf "$1,format=rgb24" -f rawvideo - |
    od -An -v -t u1 -w48 | awk '{ printf "%s%d", NR == 1 ? "" : " ", $13 - 128 }'
}
bilinear=$(reds "scale=flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp:in_range=pc:in_color_matrix=bt601")
bicubic=$(reds "scale=flags=bicubic+accurate_rnd+full_chroma_int+full_chroma_inp:in_range=pc:in_color_matrix=bt601")
zimg=$(reds "setparams=range=pc:colorspace=smpte170m:color_primaries=bt709:color_trc=bt709,zscale=filter=bilinear:chromalin=center:rangein=pc:matrixin=170m:range=pc:matrix=gbr,format=gbrp")
echo "ffmpeg $version"
echo "swscale bilinear: $bilinear"
echo "swscale bicubic:  $bicubic"
echo "zimg bilinear:    $zimg"
[ "$bilinear" = "0 0 0 0 0 0 0 0 70 127 70 0 0 0 0 0" ] && [ "$zimg" = "0 0 0 0 0 0 0 35 105 105 35 0 0 0 0 0" ] ||
  { echo "this is not what was seen with 5.1.9" >&2; exit 1; }
