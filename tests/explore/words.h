// Which words several actors touch.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace leat::explore {

// What an access is to its actor.
enum class Share : std::uint8_t {
  own,      // nobody else touches the word, or nobody writes it
  written,  // others read what this actor alone writes
  shared
};

class Words {
 public:
  void forget() { users_.clear(); }
  // `news`: this access has made a word shared that was not, or written by one more.
  Share touch(int actor, std::uintptr_t address, bool writes, bool& news);

 private:
  struct Users {
    std::uint8_t readers = 0, writers = 0;  // a bit an actor
  };
  std::unordered_map<std::uintptr_t, Users> users_;
};

}  // namespace leat::explore
