// Actors as fibers of one thread: each has a stack of its own and runs until it hands over.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace leat::explore {

class Fibers {
 public:
  static constexpr int kOutside = -1;  // who called run()

  // Begins fiber 0 and returns when somebody switches to kOutside. A fiber never returns: `ended` is called at its end
  // and must switch away.
  void run(const std::vector<std::function<void()>>& bodies, const std::function<void(int)>& ended) {
    bodies_ = &bodies;
    ended_ = &ended;
    while (stacks_.size() < bodies.size()) stacks_.push_back(std::make_unique<std::byte[]>(kStack));
    contexts_.resize(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_[i].get();
      contexts_[i].uc_stack.ss_size = kStack;
      contexts_[i].uc_link = nullptr;
      const auto self = reinterpret_cast<std::uintptr_t>(this);
      makecontext(&contexts_[i], reinterpret_cast<void (*)()>(&Fibers::enter), 3, static_cast<unsigned>(self >> 32),
                  static_cast<unsigned>(self), static_cast<unsigned>(i));
    }
    swapcontext(&outside_, contexts_.data());
  }
  void change(int from, int to) {
    ucontext_t* next = to == kOutside ? &outside_ : &contexts_[static_cast<std::size_t>(to)];
    swapcontext(&contexts_[static_cast<std::size_t>(from)], next);
  }

 private:
  static constexpr std::size_t kStack = 256 << 10;

  static void enter(unsigned high, unsigned low, unsigned index) {  // makecontext() passes numbers of 32 bits
    auto* self = reinterpret_cast<Fibers*>(std::uintptr_t{high} << 32 | low);
    (*self->bodies_)[index]();
    (*self->ended_)(static_cast<int>(index));
  }

  const std::vector<std::function<void()>>* bodies_ = nullptr;
  const std::function<void(int)>* ended_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> stacks_;
  std::vector<ucontext_t> contexts_;
  ucontext_t outside_{};
};

}  // namespace leat::explore
