// A program outside of Leat, against the installed package: nobody serves at this socket, and the library says so.
#include <cstdio>
#include <leat/client.hpp>

int main() {
  const auto client = leat::Client::connect("/nowhere/leat.sock", "outside");
  if (client.ok() || leat_abi_version() != LEAT_ABI_VERSION) return 1;
  std::printf("as expected: %s\n", client.error().c_str());
  leat::StreamOptions options;
  return client.error().find("/nowhere/leat.sock") != std::string::npos && options.overload == LEAT_OVERLOAD_latest ? 0
                                                                                                                    : 1;
}
