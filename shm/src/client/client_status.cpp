// leat_status: what a leatd serves, as text.
#include <cstring>
#include <new>

#include "leat/leat.h"
#include "shm/src/client/client_errors.h"
#include "shm/src/protocol/control_protocol.h"

using namespace leat::shm;

leat_error leat_status(const char* socket, char* text, size_t bytes, size_t* needed) try {
  if (text == nullptr && bytes != 0) return fail(LEAT_ERROR_invalid_argument, "leat_status: text is NULL");
  leat_error error = LEAT_ERROR_ok;
  auto observer = Observer::connect(socket != nullptr ? socket : leat_default_socket(), &error);
  if (!observer.ok()) return fail(error, observer.error());
  const auto said = observer->status(&error);
  if (!said.ok()) return fail(error, said.error());
  if (needed != nullptr) *needed = said->size() + 1;
  if (said->size() >= bytes)
    return fail(LEAT_ERROR_no_room, "leat_status: the text needs " + std::to_string(said->size() + 1) + " bytes");
  std::memcpy(text, said->c_str(), said->size() + 1);
  return LEAT_ERROR_ok;
} catch (const std::bad_alloc&) {
  return fail(LEAT_ERROR_no_memory, "no memory for what leatd says");
}
