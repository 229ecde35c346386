// Whether a JPEG or PNG file is whole: libavcodec shows a JPEG whose end is missing as if nothing were. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <span>

namespace leat::gateway {

// A JPEG's segments and scans are followed to its end of image, so that what stands within one (a thumbnail) is not
// taken for it. What follows the end does not matter: phones put more pictures there.
[[nodiscard]] bool jpeg_has_its_end(std::span<const std::byte> file) noexcept;
// A PNG's chunks are followed to IEND.
[[nodiscard]] bool png_has_its_end(std::span<const std::byte> file) noexcept;

}  // namespace leat::gateway
