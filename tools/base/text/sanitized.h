// Whether this is a build under a sanitizer: ten times as slow, so that what a test repeats for its figure is repeated
// less, and each kind of it is still gone through.
#pragma once

namespace leat {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace leat
