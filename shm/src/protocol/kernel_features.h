// What the running kernel offers beyond the oldest that Leat runs on. Each is looked for once, by trying it.
//
// With LEAT_OLD_KERNEL=1 in the environment (read once) every answer is no, so that what older kernels need is tested
// on a new one too. It is for tests: it takes defences away and adds none. Any thread.
#pragma once

namespace leat::shm {

bool told_old_kernel() noexcept;  // LEAT_OLD_KERNEL=1

// SO_PASSRIGHTS (Linux 6.16): a socket can refuse descriptors, so that the sender is told EPERM and nothing arrives.
bool can_refuse_descriptors() noexcept;
// Nobody can send a descriptor to `socket` from now on, nor to what it accepts. Where the kernel cannot, they arrive.
void refuse_descriptors(int socket) noexcept;

}  // namespace leat::shm
