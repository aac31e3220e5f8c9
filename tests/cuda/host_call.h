#pragma once
// Calls of generated kernels with stored arguments, as a launch does. Included after host_shim.h;
// no standard header.

template <int... I> struct host_list {};
template <int N, int... I> struct host_count : host_count<N - 1, N - 1, I...> {};
template <int... I> struct host_count<0, I...> {
  using list = host_list<I...>;
};

template <class F> struct host_arguments;
template <class... A> struct host_arguments<void(A...)> {
  static constexpr int slot = 128;  // bytes for each
  static constexpr unsigned long bytes = slot * sizeof...(A);
  using all = typename host_count<sizeof...(A)>::list;
  template <int... I>
  static void pack_each(host_list<I...>, const void* const* from, unsigned char* to) {
    static_assert(((sizeof(A) <= slot) && ...));
    (__builtin_memcpy(to + slot * I, from[I], sizeof(A)), ...);
  }
  template <int... I>
  static void run_each(host_list<I...>, void (*kernel)(A...), const unsigned char* at) {
    kernel(*(A*)(at + slot * I)...);
  }
  static void pack(const void* const* from, unsigned char* to) { pack_each(all(), from, to); }
  static void run(void (*kernel)(A...), const unsigned char* at) { run_each(all(), kernel, at); }
};

struct host_kernel {
  unsigned long bytes;
  int meets;
  void (*pack)(const void* const* from, unsigned char* to);
  void (*run)(const unsigned char* at);
};
#define HOST_KERNEL(name, meets)                                                          \
  extern "C" {                                                                            \
  host_kernel host_##name = {                                                             \
      host_arguments<decltype(name)>::bytes, meets, host_arguments<decltype(name)>::pack, \
      [](const unsigned char* at) { host_arguments<decltype(name)>::run(name, at); }};    \
  }
