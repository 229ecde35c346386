// Identities from C++ for the Python package's test, which compares its own. Standard input: for each answer its
// capture time (int64) and how many detections there are (uint64), then those; standard output: a line of identities.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "leat/client.hpp"

int main() {
  auto tracks = leat::TrackIds::create();
  if (!tracks) return 1;
  struct {
    std::int64_t capture_ns;
    std::uint64_t count;
  } head;
  std::vector<leat_detection> found;
  while (std::fread(&head, sizeof head, 1, stdin) == 1) {
    if (head.count > LEAT_MAX_DETECTIONS) return 1;
    found.resize(head.count);
    if (std::fread(found.data(), sizeof(leat_detection), found.size(), stdin) != found.size()) return 1;
    for (const std::uint64_t id : tracks->update(head.capture_ns, found))
      std::printf("%llu ", static_cast<unsigned long long>(id));
    std::printf("\n");
  }
}
