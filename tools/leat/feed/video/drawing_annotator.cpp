#include "tools/leat/feed/video/drawing_annotator.h"

#include <sys/resource.h>
#include <unistd.h>

namespace leat::tools {
namespace {

constexpr int kNice = 19;

}  // namespace

Status DrawingAnnotator::begin(const std::string& path, draw::Size size, double rate) {
  if (const Status opened = file_.open(path, size, rate); !opened.ok()) return opened;
  thread_ = std::thread([this] {
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    draw_all();
  });
  return Done{};
}

void DrawingAnnotator::stop() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

Status DrawingAnnotator::end_file() {
  stop();
  if (!written_.ok()) return written_;
  return file_.finish();
}

void DrawingAnnotator::write(std::uint64_t index, const draw::Picture& picture) {
  if (written_.ok()) written_ = file_.write(index, picture);
}

}  // namespace leat::tools
