#pragma once
// Declarations of Cython (`.pxd`), as NVIDIA's bindings have them from headers that are too large to fetch, as a header of C++.
//
//   header_of_cython("ctypedef enum ncclResult_t \"ncclResult_t\":\n    ncclSuccess \"ncclSuccess\" = 0\ncdef ncclResult_t ncclGroupStart() except?_X nogil\n")
//   // typedef int ncclResult_t; constexpr long long ncclSuccess = 0; extern "C" ncclResult_t ncclGroupStart();

#include <set>
#include <string>

namespace piper::test {

/// Enumerations with the numbers that are written out, names of types, those structures and functions that are named. What else there is, is left out.
std::string header_of_cython(const std::string& text, const std::set<std::string>& structures, const std::set<std::string>& functions);

}  // namespace piper::test
