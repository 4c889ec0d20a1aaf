// Whether this build has a sanitizer that makes everything several times slower.
#pragma once

namespace topoccl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace topoccl::test
