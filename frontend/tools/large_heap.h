#pragma once
// Memory for a process that compiles once and ends: large tables come from the heap, in large pages, and stay in the process when they are freed.
//
// A million nodes touch some hundred thousand pages of 4 KiB for the first time, each with a trap into the kernel; pages of 2 MiB need a few dozen.
// Where the system has none, and under allocators other than glibc's, nothing changes.

namespace piper::tools {

/// Before the tables grow; further calls do nothing. Address space is reserved, memory is not.
void use_large_heap();

}  // namespace piper::tools
