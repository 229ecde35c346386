// A camera loop in C++: every picture into a slot, every answer printed. Usage: camera [SOCKET] [PICTURES]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <leat/client.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  auto client = leat::Client::connect(argc > 1 ? argv[1] : "", "camera");
  if (!client) return std::fprintf(stderr, "%s\n", client.error().c_str()), 1;
  leat::StreamOptions options;
  options.application = "shapes";
  options.format = LEAT_FORMAT_rgb24;
  options.width = 640, options.height = 360;
  options.waits_for_grants = 1;
  auto stream = client->open_stream(options);
  if (!stream) return std::fprintf(stderr, "%s\n", stream.error().c_str()), 1;

  for (int left = argc > 2 ? std::atoi(argv[2]) : 100; left > 0; --left) {
    stream->wait_wanted(1s);               // at once, unless more comes than can be served: then when it is its turn
    if (auto frame = stream->acquire()) {  // none while every slot is in use: a camera would skip this picture
      for (std::uint32_t y = 0; y < frame->raw().rows[0]; ++y)  // here the camera writes; rows lie strides[0] apart
        std::memset(frame->plane(0) + std::size_t{y} * frame->raw().strides[0], left, frame->raw().row_bytes[0]);
      leat_submit_options taken{};
      taken.capture_ns = leat_now_ns();
      if (frame->submit(taken) != LEAT_ERROR_ok) break;
    }
    const auto answer = client->next_answer(1s);
    if (!answer) break;
    if (answer->result() == nullptr) {
      std::printf("%s: %s\n", leat_outcome_name(answer->raw().outcome), leat_reason_text(answer->raw().reason));
      continue;
    }
    std::printf("%u found after %.1f ms\n", answer->result()->detection_count,
                std::chrono::duration<double, std::milli>(answer->latency()).count());
  }
  return client->connected() ? 0 : 1;
}
