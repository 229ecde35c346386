// Where the explored code orders its accesses: every acquire, release and fence that an exploration has come by, found
// by its place in the source. One of them can be weakened: whatever it asks for, it gets less.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace leat::explore {

// What stands at a place; a compare-and-swap has two orders.
enum class Kind : std::uint8_t { load, store, exchange, failed_exchange, fence };

struct Site {
  std::string file;  // from the root
  std::uint32_t line = 0;
  std::string function;  // "RingProducer::write"
  Kind kind = Kind::load;
  std::memory_order order = std::memory_order_relaxed;
  bool operator==(const Site&) const = default;
};

std::string name_of(Kind kind);
std::string name_of(std::memory_order order);  // relaxed: "nothing"

class Sites {
 public:
  // What the access at a place gets, having asked for `order`; remembers the place.
  std::memory_order granted(const std::source_location& at, Kind kind, std::memory_order order);

  // All accesses of a site get `instead` from now on; at most one site at a time.
  void weaken(const Site& site, std::memory_order instead);
  void restore() { weakened_ = nullptr; }

  // Every site come by since forget(), in the order of files and lines.
  [[nodiscard]] std::vector<Site> reached() const;
  void forget();

 private:
  struct Entry {
    const char* file;
    std::uint32_t line;
    Kind kind;
    bool reached;
    Site site;
  };
  Entry& entry(const std::source_location& at, Kind kind, std::memory_order order);

  std::vector<Entry> entries_;
  const Site* weakened_ = nullptr;
  Site weak_;
  std::memory_order instead_ = std::memory_order_relaxed;
};

// The weaker orders to try instead of a site's, strongest first.
std::vector<std::memory_order> weaker(const Site& site);

}  // namespace leat::explore
