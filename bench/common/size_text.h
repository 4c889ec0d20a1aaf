// Sizes as people type them: "8", "8K", "1.5M", "128MB". K, M, G are binary, in either case; whatever
// follows the letter is ignored, as nccl-tests does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace topoccl::bench {

// Bytes; nothing for text that is no size (negative, no number, unknown letter, beyond 2^63).
std::optional<uint64_t> parseSize(const std::string& text);

}  // namespace topoccl::bench
