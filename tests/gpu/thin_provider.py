#!/usr/bin/env python3
"""A CUDA library with the code of one compute capability alone, so that it packs small.

thin_provider.py FROM TO SM [SM ...]        for example: thin_provider.py libonnxruntime_providers_cuda.so thin.so 90

The payloads of all other capabilities in its fat binaries are overwritten with zeros; nothing moves, so the library loads
as before and refuses other devices with "no kernel image". Prints what was kept and zeroed. Exit status 2 for input that
is no 64-bit ELF library with fat binaries, or that has none for the capability."""
import struct
import sys

FATBIN_MAGIC = 0xBA55ED50


def die(text):
    print(f"thin_provider.py: {text}", file=sys.stderr)
    sys.exit(2)


def sections(data, wanted):
    """Offset and size of the sections of these names."""
    if data[:5] != b"\x7fELF\x02":
        die("no 64-bit ELF file")
    table, = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    text = headers[names][4]
    found = []
    for name, _, _, _, offset, size in headers:
        end = data.index(b"\0", text + name)
        if bytes(data[text + name:end]).decode() in wanted:
            found.append((offset, size))
    return found


def thin(data, keep):
    """Zeroes in place. Returns {capability: (bytes, kept)}."""
    seen = {}
    for offset, size in sections(data, (".nv_fatbin", "__nv_relfatbin")):
        at, end = offset, offset + size
        while at + 16 <= end:
            magic, _, header, length = struct.unpack_from("<IHHQ", data, at)
            if magic != FATBIN_MAGIC:
                at += 8  # binaries are aligned, with zeros between them
                continue
            inner, stop = at + header, at + header + length
            while inner + 64 <= stop:
                _, _, head, payload = struct.unpack_from("<HHIQ", data, inner)
                sm, = struct.unpack_from("<I", data, inner + 28)
                if head < 64 or inner + head + payload > stop:
                    die(f"a fat binary at {inner} is not understood")
                kept = sm in keep
                total, _ = seen.get(sm, (0, kept))
                seen[sm] = (total + payload, kept)
                if not kept:
                    data[inner + head:inner + head + payload] = bytes(payload)
                inner += head + payload
            at = stop
    return seen


def main(words):
    if len(words) < 3 or not all(word.isdigit() for word in words[2:]):
        die("usage: thin_provider.py FROM TO SM [SM ...]")
    keep = {int(word) for word in words[2:]}
    try:
        with open(words[0], "rb") as file:
            data = bytearray(file.read())
    except OSError as problem:
        die(str(problem))
    seen = thin(data, keep)
    if not any(kept for _, kept in seen.values()):
        die(f"{words[0]} has no code for {sorted(keep)}, only for {sorted(seen)}")
    with open(words[1], "wb") as file:
        file.write(data)
    for sm, (size, kept) in sorted(seen.items()):
        print(f"sm_{sm}: {size / 1e6:.1f} MB {'kept' if kept else 'zeroed'}")


if __name__ == "__main__":
    main(sys.argv[1:])
