// For work that says nothing of how far it is: on a terminal, a line of stderr with what is done and for how long
// already, once it has taken two seconds; taken away when the object ends. Nothing where stderr is no terminal.
// Thread rule: one thread; draws from a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace leat::cli {

class Waiting {
 public:
  explicit Waiting(std::string what);  // "looking for a plan"
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void draw();
  std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;  // none where there is no terminal
};

}  // namespace leat::cli
