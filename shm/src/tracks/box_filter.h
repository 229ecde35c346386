// Where a box will be: a Kalman filter over its centre, its height and its width over height, each with its own speed.
//
// The noise is the one of ByteTrack's filter (that of SORT and DeepSORT: a twentieth of the height for a place, a
// hundred and sixtieth of it a step for a speed), for steps of 1/30 s, so that any time between two answers is some
// steps. Nothing in it couples the four, so each is a filter of two numbers. Thread rule: a value. Errors: none.
#pragma once

#include <algorithm>
#include <cmath>

#include "leat/tracking.hpp"

namespace leat::tracks {

using Box = TrackedBox;  // leat::overlap() is their intersection over union

class BoxFilter {
 public:
  static constexpr double kStepNs = 1e9 / 30;

  BoxFilter() = default;
  explicit BoxFilter(const Box& box) {
    const Measured m(box);
    const double place = 2 * kPlace * m.height, speed = 10 * kSpeed * m.height;
    x_ = {m.x, 0, place * place, 0, speed * speed};
    y_ = {m.y, 0, place * place, 0, speed * speed};
    height_ = {m.height, 0, place * place, 0, speed * speed};
    aspect_ = {m.aspect, 0, 1e-4, 0, 1e-10};
  }
  void step(double steps) {  // also back, where nothing is to be believed afterwards
    const double h = height_.at, n = std::abs(steps);
    const double place = kPlace * h * kPlace * h * n, speed = kSpeed * h * kSpeed * h * n;
    x_.step(steps, place, speed);
    y_.step(steps, place, speed);
    height_.step(steps, place, speed);
    aspect_.step(steps, 1e-4 * n, 1e-10 * n);
    height_.at = std::max(height_.at, 1.0);
    aspect_.at = std::max(aspect_.at, 0.01);
  }
  void correct(const Box& box) {
    const Measured m(box);
    const double noise = kPlace * height_.at * kPlace * height_.at;
    x_.correct(m.x, noise);
    y_.correct(m.y, noise);
    height_.correct(m.height, noise);
    aspect_.correct(m.aspect, 1e-2);
  }
  void stop_growing() { height_.speed = 0; }
  Box box() const {
    const double h = height_.at / 2, w = h * aspect_.at;
    return {static_cast<float>(x_.at - w), static_cast<float>(y_.at - h), static_cast<float>(x_.at + w),
            static_cast<float>(y_.at + h)};
  }

 private:
  static constexpr double kPlace = 1.0 / 20, kSpeed = 1.0 / 160;

  struct Measured {
    explicit Measured(const Box& b)
        : x((static_cast<double>(b.x0) + static_cast<double>(b.x1)) / 2),
          y((static_cast<double>(b.y0) + static_cast<double>(b.y1)) / 2),
          height(std::max(static_cast<double>(b.y1) - static_cast<double>(b.y0), 1.0)),
          aspect(std::max(static_cast<double>(b.x1) - static_cast<double>(b.x0), 1.0) / height) {}
    double x, y, height, aspect;
  };
  struct Moving {
    double at = 0, speed = 0;                         // a step
    double at_at = 0, at_speed = 0, speed_speed = 0;  // covariances
    void step(double steps, double place, double pace) {
      at += steps * speed;
      at_at += steps * (2 * at_speed + steps * speed_speed) + place;
      at_speed += steps * speed_speed;
      speed_speed += pace;
    }
    void correct(double measured, double noise) {
      const double all = at_at + noise, gain = at_at / all, speed_gain = at_speed / all, off = measured - at;
      at += gain * off;
      speed += speed_gain * off;
      speed_speed -= speed_gain * at_speed;
      at_speed *= 1 - gain;
      at_at *= 1 - gain;
    }
  };
  Moving x_, y_, height_, aspect_;
};

}  // namespace leat::tracks
