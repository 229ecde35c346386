// JobThreads: users take turns, a step that does not come back holds up its own user alone, what waits in the kernel is
// hurried, and who is long overdue is named.
#include "engine/daemon/clients/jobs/job_threads.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <string>

#include "tools/base/text/fd.h"

namespace leat::daemon {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

struct Task final : Job {
  std::function<bool()> does;
  std::function<void()> when_overdue = [] {};
  bool step() override { return does(); }
  void overdue() override { when_overdue(); }
};

std::shared_ptr<Task> task(std::function<bool()> does) {
  auto made = std::make_shared<Task>();
  made->does = std::move(does);
  return made;
}

TEST(JobThreads, UsersTakeTurnsAndUrgentTasksComeFirst) {
  JobThreads threads;
  std::promise<void> all_asked, all_done;
  std::string order;
  const auto named = [&](char name, bool last = false) {
    return task([&, name, last] {
      order += name;
      if (last) all_done.set_value();
      return true;
    });
  };
  threads.ask(1, task([&] {
                all_asked.get_future().wait();
                return true;
              }));
  threads.ask(1, named('a'));
  threads.ask(1, named('b', true));
  for (const char name : {'u', 'v'}) {
    auto urgent = named(name);
    urgent->urgent = true;
    threads.ask(1, std::move(urgent));
  }
  all_asked.set_value();
  ASSERT_EQ(all_done.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(order, "uvab");
}

TEST(JobThreads, AStepThatDoesNotComeBackHoldsUpItsUserAlone) {
  auto comes_back = std::make_shared<std::promise<void>>();
  std::shared_future<void> back = comes_back->get_future();
  std::atomic<bool> behind{false};
  std::promise<void> named, served, after;
  {
    JobThreads threads;
    auto stuck = task([back] {
      back.wait();
      return true;
    });
    stuck->when_overdue = [&] { named.set_value(); };
    threads.ask(1, stuck);
    threads.ask(1, task([&] {
                  behind = true;
                  after.set_value();
                  return true;
                }));
    threads.ask(2, task([&] {
                  served.set_value();
                  return true;
                }));
    EXPECT_EQ(served.get_future().wait_for(kPatience), std::future_status::ready);
    EXPECT_FALSE(behind);
    EXPECT_EQ(named.get_future().wait_for(kPatience), std::future_status::ready);
    comes_back->set_value();
    EXPECT_EQ(after.get_future().wait_for(kPatience), std::future_status::ready) << "his jobs go on";
  }
}

TEST(JobThreads, WhatIsHurriedEndsItsWait) {
  JobThreads threads;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd reader(ends[0]), writer(ends[1]);
  std::promise<int> ended;
  auto waits = task([&] {
    char byte;
    ended.set_value(read(reader.get(), &byte, 1) < 0 ? errno : 0);
    return true;
  });
  waits->hurried = true;
  threads.ask(1, waits);
  auto error = ended.get_future();
  ASSERT_EQ(error.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(error.get(), EINTR);
}

// As many as there may be lost are lost, and the end comes all the same.
TEST(JobThreads, EndWithoutTheLostOnes) {
  auto never = std::make_shared<std::promise<void>>();
  std::shared_future<void> back = never->get_future();
  std::atomic<unsigned> begun{0};
  {
    JobThreads threads;
    for (std::uint32_t user = 0; user < 2 * JobThreads::kMaxThreads; ++user)
      threads.ask(user, task([&, back] {
                    ++begun;
                    back.wait();
                    return true;
                  }));
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (begun < JobThreads::kMaxThreads && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(begun, JobThreads::kMaxThreads);
  }
  EXPECT_EQ(begun, JobThreads::kMaxThreads);
  never->set_value();  // who was lost finds nobody there
}

}  // namespace
}  // namespace leat::daemon
