# FROM, a file, as the bytes of TO, a C++ source.
file(READ ${FROM} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${TO} "extern \"C\" {\nalignas(64) extern const unsigned char leat_picture_image[] = {\n${hex}\n};\nextern const unsigned long leat_picture_image_bytes = ${bytes};\n}\n")
