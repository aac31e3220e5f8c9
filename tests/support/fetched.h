#pragma once
// Tests of what the set-up fetches, NVRTC and the headers of CUDA. Where there was none they are skipped with the reason; behind `make test`, which says so by
// `TESTS_NEED_SETUP`, what is missing is a failure.
//
//   if (!nvrtc) PIPER_NOT_FETCHED(reason);

#include <gtest/gtest.h>

#include <cstdlib>

#define PIPER_NOT_FETCHED(reason)                                       \
  do {                                                                  \
    if (std::getenv("TESTS_NEED_SETUP") != nullptr) FAIL() << (reason); \
    GTEST_SKIP() << (reason) << " (`make test` fetches it)";            \
  } while (false)
