#include "tests/explore/words.h"

namespace leat::explore {
namespace {

// Nobody but one actor, and perhaps readers where nobody writes.
bool shared(std::uint8_t readers, std::uint8_t writers) {
  const std::uint8_t all = readers | writers;
  return writers != 0 && (all & (all - 1)) != 0;
}

}  // namespace

Share Words::touch(int actor, std::uintptr_t address, bool writes, bool& news) {
  Users& users = users_[address];
  const Users was = users;
  const auto me = static_cast<std::uint8_t>(1u << actor);
  (writes ? users.writers : users.readers) |= me;
  const bool is_shared = shared(users.readers, users.writers);
  news = is_shared && (!shared(was.readers, was.writers) || was.writers != users.writers);
  if (!is_shared) return Share::own;
  return users.writers == me ? Share::written : Share::shared;
}

}  // namespace leat::explore
