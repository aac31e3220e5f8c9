#pragma once
// For tests of files that the set-up fetches: NVRTC and the headers of CUDA. Without them a test is
// skipped with the reason; under `make test`, which sets `TESTS_NEED_SETUP`, a missing file is a
// failure.
//
//   if (!nvrtc) PIPER_NOT_FETCHED(reason);

#include <gtest/gtest.h>

#include <cstdlib>

#define PIPER_NOT_FETCHED(reason)                                       \
  do {                                                                  \
    if (std::getenv("TESTS_NEED_SETUP") != nullptr) FAIL() << (reason); \
    GTEST_SKIP() << (reason) << " (`make test` fetches it)";            \
  } while (false)
