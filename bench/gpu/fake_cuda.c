/* A libcuda.so.1 for tests without a GPU: enough to be found and enumerated, nothing that computes. The environment
 * says how it behaves. LEAT_FAKE_CUDA: "none" (cuInit finds no device), otherwise one device. LEAT_FAKE_CUDA_HANG: a
 * FIFO; a process that is an MPS client writes its process id there in cuInit and then never returns. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kNoDevice = 100 };

static void hang_if_asked(void) {
  const char* fifo = getenv("LEAT_FAKE_CUDA_HANG");
  const char* pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (fifo == NULL || pipe == NULL || strlen(pipe) < 5 || strcmp(pipe + strlen(pipe) - 5, "/pipe") != 0) return;
  const int fd = open(fifo, O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    dprintf(fd, "%d\n", (int)getpid());
    close(fd);
  }
  for (;;) pause();
}

int cuInit(unsigned flags) {
  (void)flags;
  const char* mode = getenv("LEAT_FAKE_CUDA");
  if (mode != NULL && strcmp(mode, "none") == 0) return kNoDevice;
  hang_if_asked();
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kNoDevice;
}

int cuDeviceGetName(char* name, int bytes, int device) {
  (void)device;
  snprintf(name, (size_t)bytes, "No GPU at all");
  return kSuccess;
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device) {
  (void)device;
  memset(uuid, 0xab, 16);
  return kSuccess;
}

int cuDeviceGetUuid(unsigned char uuid[16], int device) { return cuDeviceGetUuid_v2(uuid, device); }
